-- Who did what: entries in the order of their commits, numbered from 1 in each tenant and chained by their
-- hashes. The form of an entry is that of world/record.ts.

CREATE TABLE record (
  tenant ANY NOT NULL,
  number INTEGER NOT NULL,
  -- Events so far, as lists count them.
  listed INTEGER NOT NULL,
  entry BLOB NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (tenant, number)
) STRICT, WITHOUT ROWID;

-- Where each tenant's chain begins and ends. All there is of a chain that was removed for its age is its
-- last number and hash.
CREATE TABLE record_heads (
  tenant ANY PRIMARY KEY,
  removed_number INTEGER NOT NULL,
  removed_listed INTEGER NOT NULL,
  removed_hash BLOB NOT NULL,
  number INTEGER NOT NULL,
  listed INTEGER NOT NULL,
  hash BLOB NOT NULL,
  sealed_number INTEGER NOT NULL,
  seal TEXT
) STRICT, WITHOUT ROWID;

-- Entries of transactions that are open.
CREATE TABLE record_parked (
  tenant ANY NOT NULL,
  transaction_id ANY NOT NULL,
  position INTEGER NOT NULL,
  events INTEGER NOT NULL,
  entry BLOB NOT NULL,
  PRIMARY KEY (tenant, transaction_id, position)
) STRICT, WITHOUT ROWID;
