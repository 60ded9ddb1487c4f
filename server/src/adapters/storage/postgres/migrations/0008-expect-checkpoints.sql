-- Changes no table, but keeps older programs from opening the database: they would accept an audit log whose checkpoint was removed.
-- The next start makes the missing checkpoints, and states under the root key that it did. Decision 0081.
SELECT 1;
