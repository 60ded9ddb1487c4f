-- Only a new tenant's name is unique: if renaming were refused for a name that is taken, a tenant could find out what the
-- others are called. Decision 0076. Tenant keys refer to their tenant, so their table is made anew with it.

ALTER TABLE tenant_keys RENAME TO tenant_keys_before;

ALTER TABLE tenants RENAME TO tenants_before;

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

INSERT INTO tenants SELECT id, name, plan, settings, created_by, created_at, modified_by, modified_at
FROM tenants_before;

CREATE TABLE tenant_keys (
  tenant ANY NOT NULL REFERENCES tenants (id),
  purpose TEXT NOT NULL,
  version INTEGER NOT NULL,
  wrapped BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, purpose, version)
) STRICT, WITHOUT ROWID;

INSERT INTO tenant_keys SELECT tenant, purpose, version, wrapped, created_at FROM tenant_keys_before;

DROP TABLE tenant_keys_before;

DROP TABLE tenants_before;
