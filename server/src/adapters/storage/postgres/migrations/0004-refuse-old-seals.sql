-- What the envelopes of the oldest data key that is still sealed under begin with; null where none was replaced. It stands in
-- the row that a commit locks, so that no server can commit what it sealed before it knew.
ALTER TABLE tenant_heads ADD COLUMN sealed_from bytea;
