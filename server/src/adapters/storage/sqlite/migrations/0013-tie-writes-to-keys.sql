-- The keys that wrote in each open transaction: it can be committed only while all of them work.
CREATE TABLE transaction_keys (
  tenant ANY NOT NULL,
  transaction_id ANY NOT NULL,
  application ANY NOT NULL,
  -- All zero for the application itself, whatever keys it has.
  application_key ANY NOT NULL,
  PRIMARY KEY (tenant, transaction_id, application, application_key)
) STRICT, WITHOUT ROWID;
