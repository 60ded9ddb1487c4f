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
  authorized_with ANY,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, nonce_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- Tenants that are gone while some of their rows are not.
CREATE TABLE deleted_tenants (
  id ANY PRIMARY KEY,
  deleted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How many tokens there are. The writer adds new ones up, batch by batch; triggers do the rest, so that
-- nothing that changes or deletes tokens can forget to.
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

INSERT INTO token_counts (tenant, unit, type, day, count, last_created_at)
SELECT tokens.tenant, ifnull(units.id, 0), type,
  max(created_at, ifnull(modified_at, 0)) / 86400000 AS day, count(*), max(created_at)
FROM tokens LEFT JOIN units ON units.id = tokens.unit
GROUP BY tokens.tenant, ifnull(units.id, 0), type, day;

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

-- What a unit held is visible now, or was removed before.
CREATE TRIGGER count_closed_unit AFTER DELETE ON units BEGIN
  INSERT INTO token_counts (tenant, unit, type, day, count, last_created_at)
  SELECT tenant, 0, type, day, count, last_created_at
  FROM token_counts WHERE tenant = old.tenant AND unit = old.id AND count <> 0
  ON CONFLICT DO UPDATE SET
    count = count + excluded.count,
    last_created_at = max(last_created_at, excluded.last_created_at);
  DELETE FROM token_counts WHERE tenant = old.tenant AND unit = old.id;
END;
