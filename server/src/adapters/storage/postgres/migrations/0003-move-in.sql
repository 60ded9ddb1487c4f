-- The move of a vault into this database, from when it began; none if nothing was moved.
CREATE TABLE moving (
  one integer PRIMARY KEY CHECK (one = 1),
  -- The source says the same.
  id uuid NOT NULL,
  -- How far it is: the table that moves, and the last row of it that arrived, as the source calls it.
  at_table text NOT NULL,
  after_row text,
  finished boolean NOT NULL
);
