-- The access state of each tenant seals its applications and their keys, and each session has a proof. The next start makes those of
-- databases of older versions, and states under the root key that it did. Decision 0082.
ALTER TABLE tenant_heads ADD COLUMN access_revision bigint NOT NULL DEFAULT 0, ADD COLUMN access text;

ALTER TABLE sessions ADD COLUMN proof bytea;
