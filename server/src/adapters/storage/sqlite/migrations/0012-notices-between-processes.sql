-- Processes that use the same store leave each other notices here: about what one did that another has to log, or about itself.
CREATE TABLE notices (
  id ANY PRIMARY KEY,
  notice TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
