-- Invocations that nobody waits for.
CREATE TABLE jobs (
  tenant uuid NOT NULL,
  id uuid NOT NULL,
  reactor uuid NOT NULL,
  -- run, deliver, keep or dead
  stage text NOT NULL,
  -- Whether a server has it, until due_at.
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

CREATE INDEX jobs_by_due ON jobs (tenant, stage, due_at, id);
CREATE INDEX jobs_due_of_all ON jobs (due_at, tenant);

-- By what a tenant's callbacks are signed.
CREATE TABLE callback_secrets (
  tenant uuid PRIMARY KEY,
  secrets bytea NOT NULL,
  revision integer NOT NULL
);
