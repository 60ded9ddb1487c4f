-- Processes that use the same store leave each other notices here: about what one did that another has to log, or about itself.
CREATE TABLE notices (
  id uuid NOT NULL,
  notice text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (id)
);
