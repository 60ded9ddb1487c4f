-- Tokens with long data are kept apart from what finds them. In a table without rowids a row is its own key: whoever
-- looks for a neighbour of one of five mebibytes reads all of it, a few times over, to tell which comes first. And what
-- comes after such data in its row is found by reading through it, so data comes last. Decision 0059.

ALTER TABLE tokens RENAME TO tokens_before;

CREATE TABLE tokens (
  tenant ANY NOT NULL,
  serial BLOB NOT NULL CHECK (length(serial) = 16),
  -- Its id, where that is not the serial.
  name ANY,
  type TEXT NOT NULL,
  -- One container as it is; none or several as JSON.
  containers TEXT NOT NULL,
  -- Visible if null or finished.
  unit INTEGER,
  revision INTEGER,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  modified_by ANY,
  modified_at INTEGER,
  expires_at INTEGER,
  cvc_expires_at INTEGER,
  deduplicate INTEGER,
  fingerprint TEXT,
  metadata TEXT,
  details TEXT,
  -- The hashes of token_indexes in the caller's order, each after its length in one byte.
  indexes BLOB,
  cvc BLOB,
  data BLOB NOT NULL,
  PRIMARY KEY (tenant, serial)
) STRICT;

INSERT INTO tokens SELECT
  tenant, serial, name, type, containers, unit, revision, created_by, created_at, modified_by, modified_at, expires_at,
  cvc_expires_at, deduplicate, fingerprint, metadata, details, indexes, cvc, data
FROM tokens_before ORDER BY tenant, serial;

DROP TABLE tokens_before;

CREATE UNIQUE INDEX token_names ON tokens (tenant, name) WHERE name IS NOT NULL;

CREATE INDEX token_uuid_names ON tokens (tenant, name) WHERE typeof(name) = 'blob';

CREATE TRIGGER token_deleted AFTER DELETE ON tokens BEGIN
  INSERT INTO token_blocks VALUES (
    OLD.tenant,
    ifnull(
      (SELECT max(first) FROM token_blocks WHERE tenant = OLD.tenant AND first <= OLD.serial), x''
    ),
    ifnull((SELECT id FROM units WHERE id = OLD.unit), 0),
    -1
  ) ON CONFLICT DO UPDATE SET tokens = tokens - 1;
END;

CREATE INDEX tokens_expiring
ON tokens (tenant, expires_at, serial, unit, type, created_at, modified_at)
WHERE expires_at IS NOT NULL;

CREATE INDEX token_fingerprints ON tokens (tenant, fingerprint, serial) WHERE fingerprint IS NOT NULL;

CREATE INDEX tokens_by_expiry ON tokens (expires_at, tenant, serial) WHERE expires_at IS NOT NULL;

CREATE INDEX tokens_by_cvc_expiry
ON tokens (cvc_expires_at, tenant, serial) WHERE cvc_expires_at IS NOT NULL;

CREATE INDEX tokens_of_transactions ON tokens (unit, tenant, serial) WHERE unit < 0;

CREATE TRIGGER count_deleted_token AFTER DELETE ON tokens BEGIN
  INSERT INTO token_counts (tenant, unit, type, day, count, last_created_at)
  VALUES (
    old.tenant,
    ifnull((SELECT id FROM units WHERE id = old.unit), 0),
    old.type,
    max(old.created_at, ifnull(old.modified_at, 0)) / 86400000,
    -1,
    0
  )
  ON CONFLICT DO UPDATE SET count = count - 1;
END;

CREATE TRIGGER count_modified_token AFTER UPDATE OF type, unit, modified_at ON tokens BEGIN
  INSERT INTO token_counts (tenant, unit, type, day, count, last_created_at)
  VALUES (
    old.tenant,
    ifnull((SELECT id FROM units WHERE id = old.unit), 0),
    old.type,
    max(old.created_at, ifnull(old.modified_at, 0)) / 86400000,
    -1,
    0
  )
  ON CONFLICT DO UPDATE SET count = count - 1;
  INSERT INTO token_counts (tenant, unit, type, day, count, last_created_at)
  VALUES (
    new.tenant,
    ifnull((SELECT id FROM units WHERE id = new.unit), 0),
    new.type,
    max(new.created_at, ifnull(new.modified_at, 0)) / 86400000,
    1,
    new.created_at
  )
  ON CONFLICT DO UPDATE SET
    count = count + 1,
    last_created_at = max(last_created_at, excluded.last_created_at);
END;

ALTER TABLE pending RENAME TO pending_before;

CREATE TABLE pending (
  tenant ANY NOT NULL,
  serial BLOB NOT NULL,
  -- The transaction's number.
  holder INTEGER NOT NULL,
  -- 1 when the token is to go; the rest is NULL then.
  deleted INTEGER,
  containers TEXT,
  revision INTEGER,
  modified_by ANY,
  modified_at INTEGER,
  expires_at INTEGER,
  cvc_expires_at INTEGER,
  deduplicate INTEGER,
  fingerprint TEXT,
  metadata TEXT,
  details TEXT,
  indexes BLOB,
  cvc BLOB,
  data BLOB,
  PRIMARY KEY (tenant, serial)
) STRICT;

INSERT INTO pending SELECT
  tenant, serial, holder, deleted, containers, revision, modified_by, modified_at, expires_at, cvc_expires_at,
  deduplicate, fingerprint, metadata, details, indexes, cvc, data
FROM pending_before ORDER BY tenant, serial;

DROP TABLE pending_before;

CREATE INDEX pending_by_holder ON pending (holder, fingerprint, tenant, serial);

CREATE INDEX pending_by_cvc_expiry
ON pending (cvc_expires_at, tenant, serial) WHERE cvc_expires_at IS NOT NULL;
