-- A list in JSON of the hosts that an application may send to; null for any.
ALTER TABLE applications ADD COLUMN destinations TEXT;
