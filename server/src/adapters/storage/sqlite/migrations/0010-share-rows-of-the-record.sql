-- Entries of a tenant that are committed together share a row: it is the last one's, and those before it are
-- in `earlier`, in order, in the form of earlier-entries.ts.

ALTER TABLE record ADD COLUMN earlier BLOB;
