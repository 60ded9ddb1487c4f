-- Version 2

CREATE TABLE installation (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  root_key_id TEXT NOT NULL,
  root_key_check BLOB NOT NULL
) STRICT;

CREATE TABLE pulse (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  beats INTEGER NOT NULL
) STRICT;

CREATE TABLE tenants (
  id ANY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
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
  modified_at INTEGER,
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

CREATE TABLE tokens (
  tenant ANY NOT NULL,
  serial BLOB NOT NULL CHECK (length(serial) = 16),
  -- Its id, where that is not the serial.
  name ANY,
  type TEXT NOT NULL,
  -- One container as it is; none or several as JSON.
  containers TEXT NOT NULL,
  data BLOB NOT NULL,
  cvc BLOB,
  cvc_expires_at INTEGER,
  metadata TEXT,
  details TEXT,
  fingerprint TEXT,
  deduplicate INTEGER,
  -- The hashes of token_indexes in the caller's order, each after its length in one byte.
  indexes BLOB,
  expires_at INTEGER,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  modified_by ANY,
  modified_at INTEGER,
  -- Visible if null or finished.
  unit INTEGER, revision INTEGER,
  PRIMARY KEY (tenant, serial)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX token_names ON tokens (tenant, name) WHERE name IS NOT NULL;

CREATE INDEX token_uuid_names ON tokens (tenant, name) WHERE typeof(name) = 'blob';

CREATE INDEX token_fingerprints ON tokens (tenant, type, fingerprint) WHERE fingerprint IS NOT NULL;

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

CREATE INDEX tokens_by_expiry ON tokens (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX tokens_by_cvc_expiry ON tokens (cvc_expires_at) WHERE cvc_expires_at IS NOT NULL;

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

CREATE INDEX tokens_of_transactions ON tokens (unit) WHERE unit < 0;

CREATE TABLE pending (
  tenant ANY NOT NULL,
  serial BLOB NOT NULL,
  -- The transaction's number.
  holder INTEGER NOT NULL,
  -- 1 when the token is to go; the rest is NULL then.
  deleted INTEGER,
  containers TEXT,
  data BLOB,
  cvc BLOB,
  cvc_expires_at INTEGER,
  metadata TEXT,
  details TEXT,
  fingerprint TEXT,
  deduplicate INTEGER,
  indexes BLOB,
  expires_at INTEGER,
  modified_by ANY,
  modified_at INTEGER,
  revision INTEGER,
  PRIMARY KEY (tenant, serial)
) STRICT, WITHOUT ROWID;

CREATE INDEX pending_by_holder ON pending (holder, fingerprint);

CREATE INDEX pending_by_cvc_expiry ON pending (cvc_expires_at) WHERE cvc_expires_at IS NOT NULL;
