-- Ids are 16-byte blobs where they have a uuid's form and text otherwise, hence ANY. Instants are epoch
-- milliseconds. What can be absent is NULL, which costs a byte.

CREATE TABLE installation (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  root_key_id TEXT NOT NULL,
  root_key_check BLOB NOT NULL
) STRICT;

-- Written to prove that writing works.
CREATE TABLE pulse (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  beats INTEGER NOT NULL
) STRICT;

INSERT INTO pulse VALUES (1, 0);

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

-- Units of work that are not finished: their tokens are nobody's to see. The numbers are never used
-- twice, because a finished unit's tokens keep theirs.
CREATE TABLE units (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant ANY NOT NULL,
  -- Its tokens lie between these serials, among others.
  first_serial BLOB NOT NULL,
  last_serial BLOB NOT NULL
) STRICT;

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
  unit INTEGER,
  PRIMARY KEY (tenant, serial)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX token_names ON tokens (tenant, name) WHERE name IS NOT NULL;

-- Names that could be mistaken for serials. Almost always empty, and so almost free to ask.
CREATE INDEX token_uuid_names ON tokens (tenant, name) WHERE typeof(name) = 'blob';

CREATE INDEX token_fingerprints ON tokens (tenant, type, fingerprint) WHERE fingerprint IS NOT NULL;

CREATE TABLE token_indexes (
  tenant ANY NOT NULL,
  hash BLOB NOT NULL,
  serial BLOB NOT NULL,
  PRIMARY KEY (tenant, hash, serial)
) STRICT, WITHOUT ROWID;

-- With a rowid: large bodies lie in the order they came, off the index.
CREATE TABLE answers (
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  status INTEGER NOT NULL,
  body BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  UNIQUE (tenant, id)
) STRICT;

CREATE INDEX answers_by_expiry ON answers (expires_at);
