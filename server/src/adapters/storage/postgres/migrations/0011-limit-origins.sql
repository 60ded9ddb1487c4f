-- A list in JSON of the origins whose pages may use an application's keys; null for any. Decision 0107.
ALTER TABLE applications ADD COLUMN allowed_origins text;
