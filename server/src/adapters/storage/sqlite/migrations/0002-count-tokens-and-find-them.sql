-- How many tokens have serials from `first` up to the `first` of the next block: what lists add up instead of
-- counting, and jump over instead of walking. Counted apart are those of units that are open; `unit` is 0
-- for all others. Tokens are counted by the writer, once for a batch (token-blocks.ts).
CREATE TABLE token_blocks (
  tenant ANY NOT NULL,
  first BLOB NOT NULL,
  unit INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant, first, unit)
) STRICT, WITHOUT ROWID;

INSERT INTO token_blocks
  SELECT tenant, CASE block WHEN 0 THEN x'' ELSE min(serial) END, 0, count(*)
  FROM (
    SELECT tenant, serial,
      (row_number() OVER (PARTITION BY tenant ORDER BY serial) - 1) / 1024 AS block
    FROM tokens
  )
  GROUP BY tenant, block;

-- Whoever deletes, and even before the writer has counted what it deletes.
CREATE TRIGGER token_deleted AFTER DELETE ON tokens BEGIN
  INSERT INTO token_blocks VALUES (
    OLD.tenant,
    ifnull(
      (SELECT max(first) FROM token_blocks WHERE tenant = OLD.tenant AND first <= OLD.serial), x''
    ),
    ifnull((SELECT id FROM units WHERE id = OLD.unit), 0),
    -1
  ) ON CONFLICT DO UPDATE SET tokens = tokens - 1;
END;

-- What nobody saw is there for everybody, and need not be counted apart any more.
CREATE TRIGGER unit_closed AFTER DELETE ON units BEGIN
  INSERT INTO token_blocks
    SELECT tenant, first, 0, tokens FROM token_blocks
    WHERE tenant = OLD.tenant AND unit = OLD.id AND first <= OLD.last_serial
      AND first >= ifnull(
        (SELECT max(first) FROM token_blocks
         WHERE tenant = OLD.tenant AND first <= OLD.first_serial),
        x''
      )
    ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens;
  DELETE FROM token_blocks
  WHERE tenant = OLD.tenant AND unit = OLD.id AND first <= OLD.last_serial
    AND first >= ifnull(
      (SELECT max(first) FROM token_blocks
       WHERE tenant = OLD.tenant AND first <= OLD.first_serial),
      x''
    );
END;

-- Expired tokens are few: those that nobody has removed yet.
CREATE INDEX tokens_expiring
ON tokens (tenant, expires_at, serial, unit, type, created_at, modified_at)
WHERE expires_at IS NOT NULL;

-- A fingerprint is one type's own, so the type told nothing; without it, it is found alone, newest first.
DROP INDEX token_fingerprints;
CREATE INDEX token_fingerprints ON tokens (tenant, fingerprint) WHERE fingerprint IS NOT NULL;

-- Metadata is found as data are, by hashes, though nobody's key is in them: it is no secret.
INSERT INTO token_indexes
  SELECT tenant, metadata_term(it.key, it.value), serial
  FROM tokens, json_each(tokens.metadata) AS it
  WHERE metadata IS NOT NULL
  ON CONFLICT DO NOTHING;
UPDATE tokens SET indexes = indexes_with_terms(indexes, metadata) WHERE metadata IS NOT NULL;
