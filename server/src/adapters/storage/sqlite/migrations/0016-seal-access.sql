-- The access state of each tenant seals its applications and their keys, and each session has a proof. The next start makes those of
-- databases of older versions, and states under the root key that it did. Decision 0082.
ALTER TABLE record_heads ADD COLUMN access_revision INTEGER NOT NULL DEFAULT 0;

ALTER TABLE record_heads ADD COLUMN access TEXT;

ALTER TABLE sessions ADD COLUMN proof BLOB;
