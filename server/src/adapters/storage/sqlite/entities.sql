-- Derived from ports/store/entities.ts by `npm run sql`.

-- update:tenant; touches no row: absent
UPDATE tenants SET name = ?2, settings = ?3, modified_by = ?4, modified_at = ?5
  WHERE id = ?1;

-- insert:tenant_key; touches no row: keys-changed
INSERT INTO tenant_keys (tenant, purpose, version, wrapped, created_at) SELECT ?1, ?2, ?3, ?4, ?5
  WHERE EXISTS (SELECT 1 FROM tenants WHERE id = ?1) ON CONFLICT DO NOTHING;

-- insert:application
INSERT INTO applications (tenant, id, name, type, permissions, rules, destinations, allowed_origins, expires_at, created_by, created_at, modified_by, modified_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13);

-- update:application; touches no row: absent
UPDATE applications SET name = ?3, type = ?4, permissions = ?5, rules = ?6, destinations = ?7, allowed_origins = ?8, expires_at = ?9, modified_by = ?10, modified_at = ?11
  WHERE tenant = ?1 AND id = ?2;

-- delete:application; touches no row: absent
DELETE FROM applications WHERE tenant = ?1 AND id = ?2;

-- delete-owned:application_key
DELETE FROM application_keys WHERE tenant = ?1 AND application = ?2;

-- insert:application_key; touches no row: absent
INSERT INTO application_keys (tenant, id, application, hash, prefix, version, created_by, created_at) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
  WHERE EXISTS (SELECT 1 FROM applications WHERE tenant = ?1 AND id = ?3);

-- delete:application_key; touches no row: absent
DELETE FROM application_keys WHERE tenant = ?1 AND application = ?2 AND id = ?3;

-- insert:session; touches no row: absent
INSERT INTO sessions (tenant, id, application, application_key, hash, nonce_hash, created_at, expires_at, proof) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
  WHERE EXISTS (SELECT 1 FROM application_keys WHERE tenant = ?1 AND application = ?3 AND id = ?4);

-- expire:session
DELETE FROM sessions WHERE (tenant, id) IN (SELECT tenant, id FROM sessions
  WHERE expires_at <= ?2 ORDER BY expires_at LIMIT 2);

-- insert:proxy
INSERT INTO proxies (tenant, id, hash, name, terms, created_by, created_at, modified_by, modified_at, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- update:proxy; touches no row: proxy-changed
UPDATE proxies SET name = ?3, terms = ?4, modified_by = ?5, modified_at = ?6, revision = ?7
  WHERE tenant = ?1 AND id = ?2 AND revision = ?7 - 1;

-- delete:proxy; touches no row: absent
DELETE FROM proxies WHERE tenant = ?1 AND id = ?2;

-- insert:reactor
INSERT INTO reactors (tenant, id, name, terms, created_by, created_at, modified_by, modified_at, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- update:reactor; touches no row: reactor-changed
UPDATE reactors SET name = ?3, terms = ?4, modified_by = ?5, modified_at = ?6, revision = ?7
  WHERE tenant = ?1 AND id = ?2 AND revision = ?7 - 1;

-- delete:reactor; touches no row: absent
DELETE FROM reactors WHERE tenant = ?1 AND id = ?2;

-- insert:job
INSERT INTO jobs (tenant, id, reactor, stage, claimed, lane, due_at, attempts, created_at, terms, result, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);

-- update:job; touches no row: job-changed
UPDATE jobs SET stage = ?3, claimed = ?4, lane = ?5, due_at = ?6, attempts = ?7, terms = ?8, result = ?9, revision = ?10
  WHERE tenant = ?1 AND id = ?2 AND revision = ?10 - 1;

-- delete:job; touches no row: job-changed
DELETE FROM jobs WHERE tenant = ?1 AND id = ?2 AND revision = ?3;

-- insert:callback_secret; touches no row: callback-secrets-changed
INSERT INTO callback_secrets (tenant, secrets, revision) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- update:callback_secret; touches no row: callback-secrets-changed
UPDATE callback_secrets SET secrets = ?2, revision = ?3
  WHERE tenant = ?1 AND revision = ?3 - 1;
