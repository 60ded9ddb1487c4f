-- The keys that wrote in each open transaction: it can be committed only while all of them work. The key is all zero for the
-- application itself, whatever keys it has.
CREATE TABLE transaction_keys (
  tenant uuid NOT NULL,
  transaction_id uuid NOT NULL,
  application uuid NOT NULL,
  application_key uuid NOT NULL,
  PRIMARY KEY (tenant, transaction_id, application, application_key)
);
