-- Version 19

CREATE TABLE installation (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  root_key_id TEXT NOT NULL,
  root_key_check BLOB NOT NULL
) STRICT;

CREATE TABLE pulse (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  beats INTEGER NOT NULL
) STRICT;

CREATE TABLE applications (
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  permissions TEXT NOT NULL,
  rules TEXT NOT NULL,
  expires_at INTEGER,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  modified_by ANY,
  modified_at INTEGER, destinations TEXT, allowed_origins TEXT,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX applications_by_age ON applications (tenant, created_at, id);

CREATE TABLE application_keys (
  tenant ANY NOT NULL,
  application ANY NOT NULL,
  id ANY NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, application, id),
  FOREIGN KEY (tenant, application) REFERENCES applications (tenant, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE units (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant ANY NOT NULL,
  -- Its tokens lie between these serials, among others.
  first_serial BLOB NOT NULL,
  last_serial BLOB NOT NULL
, holder INTEGER, whole INTEGER) STRICT;

CREATE TABLE token_indexes (
  tenant ANY NOT NULL,
  hash BLOB NOT NULL,
  serial BLOB NOT NULL,
  PRIMARY KEY (tenant, hash, serial)
) STRICT, WITHOUT ROWID;

CREATE TABLE answers (
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  status INTEGER NOT NULL,
  body BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  UNIQUE (tenant, id)
) STRICT;

CREATE INDEX answers_by_expiry ON answers (expires_at);

CREATE TABLE token_blocks (
  tenant ANY NOT NULL,
  first BLOB NOT NULL,
  unit INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant, first, unit)
) STRICT, WITHOUT ROWID;

CREATE TABLE transactions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  -- open, committed, rolled_back or expired
  state TEXT NOT NULL,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- 1 when it ended without a commit, until what it left behind is gone.
  unswept INTEGER,
  UNIQUE (tenant, id)
) STRICT;

CREATE INDEX transactions_by_expiry ON transactions (state, expires_at);

CREATE INDEX transactions_unswept ON transactions (number) WHERE unswept = 1;

CREATE INDEX units_by_holder ON units (holder) WHERE holder IS NOT NULL;

CREATE TRIGGER unit_closed AFTER DELETE ON units BEGIN
  INSERT INTO token_blocks
    SELECT tenant, first, 0, tokens FROM token_blocks
    WHERE tenant = OLD.tenant AND unit = OLD.id AND (OLD.id < 0 OR (first <= OLD.last_serial
      AND first >= ifnull(
        (SELECT max(first) FROM token_blocks
         WHERE tenant = OLD.tenant AND first <= OLD.first_serial),
        x''
      )))
    ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens;
  DELETE FROM token_blocks
  WHERE tenant = OLD.tenant AND unit = OLD.id AND (OLD.id < 0 OR (first <= OLD.last_serial
    AND first >= ifnull(
      (SELECT max(first) FROM token_blocks
       WHERE tenant = OLD.tenant AND first <= OLD.first_serial),
      x''
    )));
END;

CREATE TABLE record (
  tenant ANY NOT NULL,
  number INTEGER NOT NULL,
  -- Events so far, as lists count them.
  listed INTEGER NOT NULL,
  entry BLOB NOT NULL,
  hash BLOB NOT NULL, earlier BLOB,
  PRIMARY KEY (tenant, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE record_heads (
  tenant ANY PRIMARY KEY,
  removed_number INTEGER NOT NULL,
  removed_listed INTEGER NOT NULL,
  removed_hash BLOB NOT NULL,
  number INTEGER NOT NULL,
  listed INTEGER NOT NULL,
  hash BLOB NOT NULL,
  sealed_number INTEGER NOT NULL,
  seal TEXT
, access_revision INTEGER NOT NULL DEFAULT 0, access TEXT) STRICT, WITHOUT ROWID;

CREATE TABLE record_parked (
  tenant ANY NOT NULL,
  transaction_id ANY NOT NULL,
  position INTEGER NOT NULL,
  events INTEGER NOT NULL,
  entry BLOB NOT NULL,
  PRIMARY KEY (tenant, transaction_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  -- Which application opened it, with which key.
  application ANY NOT NULL,
  application_key ANY NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  nonce_hash BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- What it may do, and who said so; null until then.
  permissions TEXT,
  rules TEXT,
  authorized_by ANY,
  authorized_with ANY, proof BLOB,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, nonce_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE deleted_tenants (
  id ANY PRIMARY KEY,
  deleted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE token_counts (
  tenant ANY NOT NULL,
  -- The open unit the tokens belong to; 0 when they are visible.
  unit INTEGER NOT NULL,
  type TEXT NOT NULL,
  -- Days from 1970 to when they were made, or modified last.
  day INTEGER NOT NULL,
  count INTEGER NOT NULL,
  last_created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, unit, type, day)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER count_closed_unit AFTER DELETE ON units BEGIN
  INSERT INTO token_counts (tenant, unit, type, day, count, last_created_at)
  SELECT tenant, 0, type, day, count, last_created_at
  FROM token_counts WHERE tenant = old.tenant AND unit = old.id AND count <> 0
  ON CONFLICT DO UPDATE SET
    count = count + excluded.count,
    last_created_at = max(last_created_at, excluded.last_created_at);
  DELETE FROM token_counts WHERE tenant = old.tenant AND unit = old.id;
END;

CREATE TABLE proxies (
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  name TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  terms BLOB NOT NULL,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  modified_by ANY,
  modified_at INTEGER,
  revision INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX proxies_by_age ON proxies (tenant, created_at, id);

CREATE TABLE reactors (
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  name TEXT NOT NULL,
  terms BLOB NOT NULL,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  modified_by ANY,
  modified_at INTEGER,
  revision INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX reactors_by_age ON reactors (tenant, created_at, id);

CREATE TABLE jobs (
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  reactor ANY NOT NULL,
  stage TEXT NOT NULL,
  claimed INTEGER NOT NULL,
  lane TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  terms BLOB NOT NULL,
  result BLOB,
  revision INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX jobs_by_due ON jobs (tenant, stage, due_at, id, lane);

CREATE INDEX jobs_due_of_all ON jobs (due_at, tenant);

CREATE TABLE callback_secrets (
  tenant ANY NOT NULL PRIMARY KEY,
  secrets BLOB NOT NULL,
  revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE INDEX pending_by_holder ON pending (holder, fingerprint, tenant, serial);

CREATE INDEX pending_by_cvc_expiry
ON pending (cvc_expires_at, tenant, serial) WHERE cvc_expires_at IS NOT NULL;

CREATE TABLE notices (
  id ANY PRIMARY KEY,
  notice TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE transaction_keys (
  tenant ANY NOT NULL,
  transaction_id ANY NOT NULL,
  application ANY NOT NULL,
  -- All zero for the application itself, whatever keys it has.
  application_key ANY NOT NULL,
  PRIMARY KEY (tenant, transaction_id, application, application_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE tenants (
  id ANY PRIMARY KEY,
  name TEXT NOT NULL,
  plan TEXT NOT NULL,
  settings TEXT NOT NULL,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  modified_by ANY,
  modified_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE tenant_keys (
  tenant ANY NOT NULL REFERENCES tenants (id),
  purpose TEXT NOT NULL,
  version INTEGER NOT NULL,
  wrapped BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, purpose, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX transactions_open ON transactions (tenant, created_by, expires_at) WHERE state = 'open';

CREATE TABLE job_sizes (
  tenant ANY NOT NULL,
  stage TEXT NOT NULL,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (tenant, stage)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER measure_inserted_job AFTER INSERT ON jobs BEGIN
  INSERT INTO job_sizes (tenant, stage, count, bytes)
  VALUES (new.tenant, new.stage, 1, length(new.terms) + ifnull(length(new.result), 0))
  ON CONFLICT DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER measure_deleted_job AFTER DELETE ON jobs BEGIN
  INSERT INTO job_sizes (tenant, stage, count, bytes)
  VALUES (old.tenant, old.stage, -1, -length(old.terms) - ifnull(length(old.result), 0))
  ON CONFLICT DO UPDATE SET count = count - 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER measure_updated_job AFTER UPDATE OF tenant, stage, terms, result ON jobs BEGIN
  INSERT INTO job_sizes (tenant, stage, count, bytes)
  VALUES (old.tenant, old.stage, -1, -length(old.terms) - ifnull(length(old.result), 0))
  ON CONFLICT DO UPDATE SET count = count - 1, bytes = bytes + excluded.bytes;
  INSERT INTO job_sizes (tenant, stage, count, bytes)
  VALUES (new.tenant, new.stage, 1, length(new.terms) + ifnull(length(new.result), 0))
  ON CONFLICT DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
END;
