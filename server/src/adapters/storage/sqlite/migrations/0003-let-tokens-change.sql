-- How often a token was changed; NULL for never.
ALTER TABLE tokens ADD COLUMN revision INTEGER;

-- What has an end, in the order of the ends.
CREATE INDEX tokens_by_expiry ON tokens (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX tokens_by_cvc_expiry ON tokens (cvc_expires_at) WHERE cvc_expires_at IS NOT NULL;

-- The numbers are never used twice, because tokens keep them.
CREATE TABLE transactions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant ANY NOT NULL,
  id ANY NOT NULL,
  -- open, committed, rolled_back or expired
  state TEXT NOT NULL,
  created_by ANY NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- 1 when it ended without a commit, until what it left behind is gone.
  unswept INTEGER,
  UNIQUE (tenant, id)
) STRICT;

CREATE INDEX transactions_by_expiry ON transactions (state, expires_at);
CREATE INDEX transactions_unswept ON transactions (number) WHERE unswept = 1;

-- The transaction that a unit waits for: its number. One that waits for none is being staged.
ALTER TABLE units ADD COLUMN holder INTEGER;
-- 1 when nothing more comes. A transaction's own unit, which single tokens are added to, is always whole;
-- its id is the transaction's number, negative.
ALTER TABLE units ADD COLUMN whole INTEGER;

CREATE INDEX units_by_holder ON units (holder) WHERE holder IS NOT NULL;

-- The tokens that were made one by one in transactions; long lists are found by their serials.
CREATE INDEX tokens_of_transactions ON tokens (unit) WHERE unit < 0;

-- What transactions will make of tokens that are there. The key is the lock.
CREATE TABLE pending (
  tenant ANY NOT NULL,
  serial BLOB NOT NULL,
  -- The transaction's number.
  holder INTEGER NOT NULL,
  -- 1 when the token is to go; the rest is NULL then.
  deleted INTEGER,
  containers TEXT,
  data BLOB,
  cvc BLOB,
  cvc_expires_at INTEGER,
  metadata TEXT,
  details TEXT,
  fingerprint TEXT,
  deduplicate INTEGER,
  indexes BLOB,
  expires_at INTEGER,
  modified_by ANY,
  modified_at INTEGER,
  revision INTEGER,
  PRIMARY KEY (tenant, serial)
) STRICT, WITHOUT ROWID;

CREATE INDEX pending_by_holder ON pending (holder, fingerprint);
CREATE INDEX pending_by_cvc_expiry ON pending (cvc_expires_at) WHERE cvc_expires_at IS NOT NULL;

-- The tokens of a transaction's own unit lie anywhere.
DROP TRIGGER unit_closed;
CREATE TRIGGER unit_closed AFTER DELETE ON units BEGIN
  INSERT INTO token_blocks
    SELECT tenant, first, 0, tokens FROM token_blocks
    WHERE tenant = OLD.tenant AND unit = OLD.id AND (OLD.id < 0 OR (first <= OLD.last_serial
      AND first >= ifnull(
        (SELECT max(first) FROM token_blocks
         WHERE tenant = OLD.tenant AND first <= OLD.first_serial),
        x''
      )))
    ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens;
  DELETE FROM token_blocks
  WHERE tenant = OLD.tenant AND unit = OLD.id AND (OLD.id < 0 OR (first <= OLD.last_serial
    AND first >= ifnull(
      (SELECT max(first) FROM token_blocks
       WHERE tenant = OLD.tenant AND first <= OLD.first_serial),
      x''
    )));
END;
