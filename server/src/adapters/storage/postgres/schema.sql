-- Version 11

CREATE TABLE answers (
  tenant uuid NOT NULL,
  id text NOT NULL,
  status integer NOT NULL,
  body bytea NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX answers_by_expiry ON answers USING btree (expires_at);

CREATE TABLE application_keys (
  tenant uuid NOT NULL,
  application uuid NOT NULL,
  id uuid NOT NULL,
  hash bytea NOT NULL,
  prefix text NOT NULL,
  version integer NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, application, id),
  UNIQUE (hash)
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
  allowed_origins text,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX applications_by_age ON applications USING btree (tenant, created_at, id);

CREATE TABLE callback_secrets (
  tenant uuid NOT NULL,
  secrets bytea NOT NULL,
  revision integer NOT NULL,
  PRIMARY KEY (tenant)
);

CREATE TABLE deleted_tenants (
  id uuid NOT NULL,
  deleted_at bigint NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE installation (
  one integer NOT NULL,
  root_key_id text NOT NULL,
  root_key_check bytea NOT NULL,
  CHECK ((one = 1)),
  PRIMARY KEY (one)
);

CREATE TABLE jobs (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  reactor uuid NOT NULL,
  stage text NOT NULL,
  claimed boolean NOT NULL,
  lane text NOT NULL,
  due_at bigint NOT NULL,
  attempts integer NOT NULL,
  created_at bigint NOT NULL,
  terms bytea NOT NULL,
  result bytea,
  revision integer NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX jobs_by_due ON jobs USING btree (tenant, stage, due_at, id);
CREATE INDEX jobs_due_of_all ON jobs USING btree (due_at, tenant);

CREATE TABLE moving (
  one integer NOT NULL,
  id uuid NOT NULL,
  at_table text NOT NULL,
  after_row text,
  finished boolean NOT NULL,
  CHECK ((one = 1)),
  PRIMARY KEY (one)
);

CREATE TABLE notices (
  id uuid NOT NULL,
  notice text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE pending (
  tenant uuid NOT NULL,
  serial uuid NOT NULL,
  holder uuid NOT NULL,
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
CREATE INDEX pending_by_cvc_expiry ON pending USING btree (cvc_expires_at) WHERE (cvc_expires_at IS NOT NULL);
CREATE INDEX pending_by_holder ON pending USING btree (tenant, holder, fingerprint);

CREATE TABLE proxies (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  hash bytea NOT NULL,
  terms bytea NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  modified_by text,
  modified_at bigint,
  revision integer NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (hash)
);
CREATE INDEX proxies_by_age ON proxies USING btree (tenant, created_at, id);

CREATE TABLE pulse (
  one integer NOT NULL,
  beats bigint NOT NULL,
  CHECK ((one = 1)),
  PRIMARY KEY (one)
);

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
CREATE INDEX reactors_by_age ON reactors USING btree (tenant, created_at, id);

CREATE TABLE record (
  tenant uuid NOT NULL,
  number bigint NOT NULL,
  listed bigint NOT NULL,
  entry bytea NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (tenant, number)
);

CREATE TABLE record_parked (
  tenant uuid NOT NULL,
  transaction_id text NOT NULL,
  position integer NOT NULL,
  events integer NOT NULL,
  entry bytea NOT NULL,
  PRIMARY KEY (tenant, transaction_id, "position")
);

CREATE TABLE schema_version (
  one integer NOT NULL,
  version integer NOT NULL,
  CHECK ((one = 1)),
  PRIMARY KEY (one)
);

CREATE TABLE sessions (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  application uuid NOT NULL,
  application_key uuid NOT NULL,
  hash bytea NOT NULL,
  nonce_hash bytea NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  permissions text,
  rules text,
  authorized_by uuid,
  authorized_with uuid,
  proof bytea,
  PRIMARY KEY (tenant, id),
  UNIQUE (hash),
  UNIQUE (tenant, nonce_hash)
);
CREATE INDEX sessions_by_expiry ON sessions USING btree (tenant, expires_at);

CREATE TABLE tenant_heads (
  tenant uuid NOT NULL,
  removed_number bigint NOT NULL,
  removed_listed bigint NOT NULL,
  removed_hash bytea NOT NULL,
  number bigint NOT NULL,
  listed bigint NOT NULL,
  hash bytea NOT NULL,
  sealed_number bigint NOT NULL,
  seal text,
  sealed_from bytea,
  access_revision bigint NOT NULL,
  access text,
  PRIMARY KEY (tenant)
);

CREATE TABLE tenant_keys (
  tenant uuid NOT NULL,
  purpose text NOT NULL,
  version integer NOT NULL,
  wrapped bytea NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, purpose, version)
);

CREATE TABLE tenants (
  id uuid NOT NULL,
  name text NOT NULL,
  plan text NOT NULL,
  settings text NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  modified_by text,
  modified_at bigint,
  PRIMARY KEY (id)
);

CREATE TABLE token_counts (
  tenant uuid NOT NULL,
  made_in uuid NOT NULL,
  type text NOT NULL,
  day bigint NOT NULL,
  count bigint NOT NULL,
  last_created_at bigint NOT NULL,
  PRIMARY KEY (tenant, made_in, type, day)
);

CREATE TABLE token_indexes (
  tenant uuid NOT NULL,
  hash bytea NOT NULL,
  serial uuid NOT NULL,
  PRIMARY KEY (tenant, hash, serial)
);

CREATE TABLE tokens (
  tenant uuid NOT NULL,
  serial uuid NOT NULL,
  name text,
  uuid_name uuid,
  type text NOT NULL,
  containers text NOT NULL,
  data bytea NOT NULL,
  cvc bytea,
  cvc_expires_at bigint,
  metadata text,
  details text,
  fingerprint text,
  deduplicate boolean NOT NULL,
  indexes bytea,
  expires_at bigint,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  modified_by text,
  modified_at bigint,
  revision integer NOT NULL,
  made_in uuid,
  PRIMARY KEY (tenant, serial)
);
CREATE INDEX token_fingerprints ON tokens USING btree (tenant, fingerprint, serial) WHERE (fingerprint IS NOT NULL);
CREATE UNIQUE INDEX token_names ON tokens USING btree (tenant, name) WHERE (name IS NOT NULL);
CREATE UNIQUE INDEX token_uuid_names ON tokens USING btree (tenant, uuid_name) WHERE (uuid_name IS NOT NULL);
CREATE INDEX tokens_by_cvc_expiry ON tokens USING btree (cvc_expires_at) WHERE (cvc_expires_at IS NOT NULL);
CREATE INDEX tokens_by_expiry ON tokens USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX tokens_expiring ON tokens USING btree (tenant, expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX tokens_of_transactions ON tokens USING btree (tenant, made_in) WHERE (made_in IS NOT NULL);

CREATE TABLE transaction_keys (
  tenant uuid NOT NULL,
  transaction_id uuid NOT NULL,
  application uuid NOT NULL,
  application_key uuid NOT NULL,
  PRIMARY KEY (tenant, transaction_id, application, application_key)
);

CREATE TABLE transactions (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  state text NOT NULL,
  created_by text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  unswept boolean NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX transactions_by_expiry ON transactions USING btree (state, expires_at);
CREATE INDEX transactions_open ON transactions USING btree (tenant, created_by, expires_at) WHERE (state = 'open'::text);
CREATE INDEX transactions_unswept ON transactions USING btree (tenant, id) WHERE unswept;
