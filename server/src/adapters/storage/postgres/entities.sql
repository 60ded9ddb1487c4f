-- Derived from ports/store/entities.ts by `npm run sql`.

-- update:tenant; touches no row: absent
UPDATE tenants SET name = $2::text, settings = $3::text, modified_by = $4::text, modified_at = $5::bigint
  WHERE id = $1::uuid;

-- insert:tenant_key; touches no row: keys-changed
INSERT INTO tenant_keys (tenant, purpose, version, wrapped, created_at) SELECT $1::uuid, $2::text, $3::bigint, $4::bytea, $5::bigint
  WHERE EXISTS (SELECT 1 FROM tenants WHERE id = $1::uuid) ON CONFLICT DO NOTHING;

-- insert:application
INSERT INTO applications (tenant, id, name, type, permissions, rules, destinations, allowed_origins, expires_at, created_by, created_at, modified_by, modified_at) VALUES ($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::bigint, $10::text, $11::bigint, $12::text, $13::bigint);

-- update:application; touches no row: absent
UPDATE applications SET name = $3::text, type = $4::text, permissions = $5::text, rules = $6::text, destinations = $7::text, allowed_origins = $8::text, expires_at = $9::bigint, modified_by = $10::text, modified_at = $11::bigint
  WHERE tenant = $1::uuid AND id = $2::uuid;

-- delete:application; touches no row: absent
DELETE FROM applications WHERE tenant = $1::uuid AND id = $2::uuid;

-- delete-owned:application_key
DELETE FROM application_keys WHERE tenant = $1::uuid AND application = $2::uuid;

-- insert:application_key; touches no row: absent
INSERT INTO application_keys (tenant, id, application, hash, prefix, version, created_by, created_at) SELECT $1::uuid, $2::uuid, $3::uuid, $4::bytea, $5::text, $6::bigint, $7::text, $8::bigint
  WHERE EXISTS (SELECT 1 FROM applications WHERE tenant = $1::uuid AND id = $3::uuid);

-- delete:application_key; touches no row: absent
DELETE FROM application_keys WHERE tenant = $1::uuid AND application = $2::uuid AND id = $3::uuid;

-- insert:session; touches no row: absent
INSERT INTO sessions (tenant, id, application, application_key, hash, nonce_hash, created_at, expires_at, proof) SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::bytea, $6::bytea, $7::bigint, $8::bigint, $9::bytea
  WHERE EXISTS (SELECT 1 FROM application_keys WHERE tenant = $1::uuid AND application = $3::uuid AND id = $4::uuid);

-- expire:session
DELETE FROM sessions WHERE (tenant, id) IN (SELECT tenant, id FROM sessions
  WHERE tenant = $1::uuid AND expires_at <= $2::bigint ORDER BY expires_at LIMIT 10);

-- insert:proxy
INSERT INTO proxies (tenant, id, hash, name, terms, created_by, created_at, modified_by, modified_at, revision) VALUES ($1::uuid, $2::uuid, $3::bytea, $4::text, $5::bytea, $6::text, $7::bigint, $8::text, $9::bigint, $10::bigint);

-- update:proxy; touches no row: proxy-changed
UPDATE proxies SET name = $3::text, terms = $4::bytea, modified_by = $5::text, modified_at = $6::bigint, revision = $7::bigint
  WHERE tenant = $1::uuid AND id = $2::uuid AND revision = $7::bigint - 1;

-- delete:proxy; touches no row: absent
DELETE FROM proxies WHERE tenant = $1::uuid AND id = $2::uuid;

-- insert:reactor
INSERT INTO reactors (tenant, id, name, terms, created_by, created_at, modified_by, modified_at, revision) VALUES ($1::uuid, $2::uuid, $3::text, $4::bytea, $5::text, $6::bigint, $7::text, $8::bigint, $9::bigint);

-- update:reactor; touches no row: reactor-changed
UPDATE reactors SET name = $3::text, terms = $4::bytea, modified_by = $5::text, modified_at = $6::bigint, revision = $7::bigint
  WHERE tenant = $1::uuid AND id = $2::uuid AND revision = $7::bigint - 1;

-- delete:reactor; touches no row: absent
DELETE FROM reactors WHERE tenant = $1::uuid AND id = $2::uuid;

-- insert:job
INSERT INTO jobs (tenant, id, reactor, stage, claimed, lane, due_at, attempts, created_at, terms, result, revision) VALUES ($1::uuid, $2::uuid, $3::uuid, $4::text, $5::boolean, $6::text, $7::bigint, $8::bigint, $9::bigint, $10::bytea, $11::bytea, $12::bigint);

-- update:job; touches no row: job-changed
UPDATE jobs SET stage = $3::text, claimed = $4::boolean, lane = $5::text, due_at = $6::bigint, attempts = $7::bigint, terms = $8::bytea, result = $9::bytea, revision = $10::bigint
  WHERE tenant = $1::uuid AND id = $2::uuid AND revision = $10::bigint - 1;

-- delete:job; touches no row: job-changed
DELETE FROM jobs WHERE tenant = $1::uuid AND id = $2::uuid AND revision = $3::bigint;

-- insert:callback_secret; touches no row: callback-secrets-changed
INSERT INTO callback_secrets (tenant, secrets, revision) VALUES ($1::uuid, $2::bytea, $3::bigint) ON CONFLICT DO NOTHING;

-- update:callback_secret; touches no row: callback-secrets-changed
UPDATE callback_secrets SET secrets = $2::bytea, revision = $3::bigint
  WHERE tenant = $1::uuid AND revision = $3::bigint - 1;
