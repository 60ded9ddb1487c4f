-- Only a new tenant's name is unique: if renaming were refused for a name that is taken, a tenant could find out what the
-- others are called. Decision 0076.
ALTER TABLE tenants DROP CONSTRAINT tenants_name_key;
