-- Finds the open transactions of an application, which are counted when it opens another. Decision 0087.
CREATE INDEX IF NOT EXISTS transactions_open ON transactions (tenant, created_by, expires_at) WHERE state = 'open';
