-- What the jobs of each tenant take up, by stage, so that nobody has to read them all. Decision 0093.
CREATE TABLE IF NOT EXISTS job_sizes (
  tenant ANY NOT NULL,
  stage TEXT NOT NULL,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (tenant, stage)
) STRICT, WITHOUT ROWID;

DELETE FROM job_sizes;

INSERT INTO job_sizes (tenant, stage, count, bytes)
SELECT tenant, stage, count(*), sum(length(terms) + ifnull(length(result), 0))
FROM jobs GROUP BY tenant, stage;

CREATE TRIGGER IF NOT EXISTS measure_inserted_job AFTER INSERT ON jobs BEGIN
  INSERT INTO job_sizes (tenant, stage, count, bytes)
  VALUES (new.tenant, new.stage, 1, length(new.terms) + ifnull(length(new.result), 0))
  ON CONFLICT DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER IF NOT EXISTS measure_deleted_job AFTER DELETE ON jobs BEGIN
  INSERT INTO job_sizes (tenant, stage, count, bytes)
  VALUES (old.tenant, old.stage, -1, -length(old.terms) - ifnull(length(old.result), 0))
  ON CONFLICT DO UPDATE SET count = count - 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER IF NOT EXISTS measure_updated_job AFTER UPDATE OF tenant, stage, terms, result ON jobs BEGIN
  INSERT INTO job_sizes (tenant, stage, count, bytes)
  VALUES (old.tenant, old.stage, -1, -length(old.terms) - ifnull(length(old.result), 0))
  ON CONFLICT DO UPDATE SET count = count - 1, bytes = bytes + excluded.bytes;
  INSERT INTO job_sizes (tenant, stage, count, bytes)
  VALUES (new.tenant, new.stage, 1, length(new.terms) + ifnull(length(new.result), 0))
  ON CONFLICT DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
END;
