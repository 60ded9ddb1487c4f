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
