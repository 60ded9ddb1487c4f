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
