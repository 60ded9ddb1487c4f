-- Instants are epoch milliseconds. Texts that callers chose are kept as packText() writes them, since
-- PostgreSQL has no text with a NUL in it. Tables with rows of tenants have the tenant first in every key, so that they can be
-- spread over many machines by it.

CREATE TABLE installation (
  one integer PRIMARY KEY CHECK (one = 1),
  root_key_id text NOT NULL,
  root_key_check bytea NOT NULL
);

-- Written to prove that writing works.
CREATE TABLE pulse (
  one integer PRIMARY KEY CHECK (one = 1),
  beats bigint NOT NULL
);

INSERT INTO pulse VALUES (1, 0);

CREATE TABLE tenants (
  id uuid PRIMARY KEY,
  name text NOT NULL UNIQUE,
  plan text NOT NULL,
  settings text NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  modified_by text,
  modified_at bigint
);

CREATE TABLE tenant_keys (
  tenant uuid NOT NULL,
  purpose text NOT NULL,
  version integer NOT NULL,
  wrapped bytea NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, purpose, version)
);

-- Tenants that are gone while some of their rows are not.
CREATE TABLE deleted_tenants (
  id uuid PRIMARY KEY,
  deleted_at bigint NOT NULL
);

-- Where each tenant's record begins and ends. Whoever writes for a tenant locks its row first, on whatever
-- server: so the tenant's commits are made one after another.
CREATE TABLE tenant_heads (
  tenant uuid PRIMARY KEY,
  removed_number bigint NOT NULL,
  removed_listed bigint NOT NULL,
  removed_hash bytea NOT NULL,
  number bigint NOT NULL,
  listed bigint NOT NULL,
  hash bytea NOT NULL,
  sealed_number bigint NOT NULL,
  seal text
);

CREATE TABLE record (
  tenant uuid NOT NULL,
  number bigint NOT NULL,
  -- Events so far, as lists count them.
  listed bigint NOT NULL,
  entry bytea NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (tenant, number)
);

-- Entries of transactions that are open.
CREATE TABLE record_parked (
  tenant uuid NOT NULL,
  transaction_id text NOT NULL,
  position integer NOT NULL,
  events integer NOT NULL,
  entry bytea NOT NULL,
  PRIMARY KEY (tenant, transaction_id, position)
);

CREATE TABLE applications (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  type text NOT NULL,
  permissions text NOT NULL,
  rules text NOT NULL,
  destinations text,
  expires_at bigint,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  modified_by text,
  modified_at bigint,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX applications_by_age ON applications (tenant, created_at, id);

CREATE TABLE application_keys (
  tenant uuid NOT NULL,
  application uuid NOT NULL,
  id uuid NOT NULL,
  hash bytea NOT NULL UNIQUE,
  prefix text NOT NULL,
  version integer NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, application, id)
);

CREATE TABLE sessions (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  -- Which application opened it, with which key.
  application uuid NOT NULL,
  application_key uuid NOT NULL,
  hash bytea NOT NULL UNIQUE,
  nonce_hash bytea NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  -- What it may do, and who said so; null until then.
  permissions text,
  rules text,
  authorized_by uuid,
  authorized_with uuid,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, nonce_hash)
);

CREATE INDEX sessions_by_expiry ON sessions (tenant, expires_at);

CREATE TABLE proxies (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  hash bytea NOT NULL UNIQUE,
  terms bytea NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  modified_by text,
  modified_at bigint,
  revision integer NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX proxies_by_age ON proxies (tenant, created_at, id);

CREATE TABLE reactors (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  terms bytea NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  modified_by text,
  modified_at bigint,
  revision integer NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX reactors_by_age ON reactors (tenant, created_at, id);

CREATE TABLE answers (
  tenant uuid NOT NULL,
  id text NOT NULL,
  status integer NOT NULL,
  body bytea NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX answers_by_expiry ON answers (expires_at);

CREATE TABLE transactions (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  -- open, committed, rolled_back or expired
  state text NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  -- Whether it ended without a commit, and something that it left behind may be there.
  unswept boolean NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX transactions_by_expiry ON transactions (state, expires_at);
CREATE INDEX transactions_unswept ON transactions (tenant, id) WHERE unswept;

CREATE TABLE tokens (
  tenant uuid NOT NULL,
  serial uuid NOT NULL,
  -- Its id, where that is not the serial; and once more where it could be mistaken for one.
  name text,
  uuid_name uuid,
  type text NOT NULL,
  -- One container as it is; none or several as JSON.
  containers text NOT NULL,
  data bytea NOT NULL,
  cvc bytea,
  cvc_expires_at bigint,
  metadata text,
  details text,
  fingerprint text,
  deduplicate boolean NOT NULL,
  -- The hashes of token_indexes: the caller's in their order, then those of metadata.
  indexes bytea,
  expires_at bigint,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  modified_by text,
  modified_at bigint,
  revision integer NOT NULL,
  -- The transaction it was made in. It is visible when that is committed, or forgotten.
  made_in uuid,
  PRIMARY KEY (tenant, serial)
);

CREATE UNIQUE INDEX token_names ON tokens (tenant, name) WHERE name IS NOT NULL;
-- Almost always empty, and so almost free to ask.
CREATE UNIQUE INDEX token_uuid_names ON tokens (tenant, uuid_name) WHERE uuid_name IS NOT NULL;
CREATE INDEX token_fingerprints ON tokens (tenant, fingerprint, serial) WHERE fingerprint IS NOT NULL;
CREATE INDEX tokens_expiring ON tokens (tenant, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX tokens_by_expiry ON tokens (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX tokens_by_cvc_expiry ON tokens (cvc_expires_at) WHERE cvc_expires_at IS NOT NULL;
CREATE INDEX tokens_of_transactions ON tokens (tenant, made_in) WHERE made_in IS NOT NULL;

CREATE TABLE token_indexes (
  tenant uuid NOT NULL,
  hash bytea NOT NULL,
  serial uuid NOT NULL,
  PRIMARY KEY (tenant, hash, serial)
);

-- How many tokens there are, added up by whoever writes.
CREATE TABLE token_counts (
  tenant uuid NOT NULL,
  -- The transaction they were made in while that is not committed; all zero for those that are visible.
  made_in uuid NOT NULL,
  type text NOT NULL,
  -- Days from 1970 to when they were made, or modified last.
  day bigint NOT NULL,
  count bigint NOT NULL,
  last_created_at bigint NOT NULL,
  PRIMARY KEY (tenant, made_in, type, day)
);

-- What transactions will make of tokens that are there. The key is the lock.
CREATE TABLE pending (
  tenant uuid NOT NULL,
  serial uuid NOT NULL,
  -- The transaction.
  holder uuid NOT NULL,
  -- Whether the token is to go; the rest is NULL then.
  deleted boolean NOT NULL,
  containers text,
  data bytea,
  cvc bytea,
  cvc_expires_at bigint,
  metadata text,
  details text,
  fingerprint text,
  deduplicate boolean,
  indexes bytea,
  expires_at bigint,
  modified_by text,
  modified_at bigint,
  revision integer,
  PRIMARY KEY (tenant, serial)
);

CREATE INDEX pending_by_holder ON pending (tenant, holder, fingerprint);
CREATE INDEX pending_by_cvc_expiry ON pending (cvc_expires_at) WHERE cvc_expires_at IS NOT NULL;
