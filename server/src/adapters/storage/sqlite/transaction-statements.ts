/** Statements that open, guard and end transactions. */
import type { Statement } from './statements.ts'
import { DEAD, EXPIRE, livesAt, numberOf } from './visibility.ts'

export const TRANSACTION_TABLE = {
  openTransaction: {
    sql: `INSERT INTO transactions (tenant, id, state, created_by, created_at, expires_at)
      SELECT ?1, ?2, ?3, ?4, ?5, ?6
      WHERE ?7 > (SELECT count(*) FROM transactions INDEXED BY transactions_open
        WHERE tenant = ?1 AND created_by = ?4 AND state = 'open' AND expires_at > ?5)`,
    params: ['id', 'id', 'text', 'id', 'integer', 'integer', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'transactions-open-max',
  },

  openOwnStagingBatch: {
    sql: `INSERT INTO units (id, tenant, first_serial, last_serial, holder, whole)
      SELECT -number, tenant, X'', X'', number, 1 FROM transactions WHERE tenant = ?1 AND id = ?2`,
    params: ['id', 'id'],
    refuses: 'if-nothing-changed',
    conflict: null,
  },

  requireOpen: {
    sql: `SELECT 1 FROM transactions
      WHERE tenant = ?1 AND id = ?2 AND state = 'open' AND expires_at > ?3`,
    params: ['id', 'id', 'integer'],
    refuses: 'if-absent',
    conflict: 'transaction-not-open',
  },

  noteKey: {
    sql: `INSERT INTO transaction_keys (tenant, transaction_id, application, application_key)
      VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    params: ['id', 'id', 'id', 'id'],
    refuses: 'never',
  },

  /** Finds a key that wrote in the transaction and no longer works. */
  refuseRevoked: {
    sql: `SELECT 1 FROM transaction_keys AS it WHERE tenant = ?1 AND transaction_id = ?2 AND (
      NOT EXISTS (SELECT 1 FROM applications
        WHERE tenant = ?1 AND id = it.application AND ${livesAt('?3', 'applications')})
      OR (it.application_key <> zeroblob(16) AND NOT EXISTS (SELECT 1 FROM application_keys
        WHERE tenant = ?1 AND application = it.application AND id = it.application_key)))`,
    params: ['id', 'id', 'integer'],
    refuses: 'if-found',
    conflict: 'transaction-revoked',
  },

  forgetKeys: {
    sql: 'DELETE FROM transaction_keys WHERE tenant = ?1 AND transaction_id = ?2',
    params: ['id', 'id'],
    refuses: 'never',
  },

  endTransaction: {
    sql: `UPDATE transactions SET state = ?4, unswept = iif(?4 = 'committed', NULL, 1)
      WHERE tenant = ?1 AND id = ?2 AND state = 'open' AND expires_at > ?3`,
    params: ['id', 'id', 'integer', 'text'],
    refuses: 'if-nothing-changed',
    conflict: 'transaction-not-open',
  },

  expireTransaction: {
    sql: `UPDATE transactions SET ${EXPIRE}
      WHERE tenant = ?1 AND id = ?2 AND state = 'open' AND expires_at <= ?3`,
    params: ['id', 'id', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'transaction-not-open',
  },

  /** Makes all tokens of the transaction visible. A list still being staged is too late. */
  closeStagingBatches: {
    sql: `DELETE FROM units WHERE holder = ${numberOf('?1', '?2')} AND whole = 1`,
    params: ['id', 'id'],
    refuses: 'never',
  },

  /** Opens the staging batch of a long list in a transaction. */
  openHeldStagingBatch: {
    sql: `INSERT INTO units (id, tenant, first_serial, last_serial, holder, whole)
      VALUES (?1, ?2, ?3, ?4, ${numberOf('?2', '?5')}, 0)`,
    params: ['integer', 'id', 'id', 'id', 'id'],
    refuses: 'if-nothing-changed',
    conflict: null,
  },

  /** Hands a fully staged list over to its transaction. */
  handOver: {
    sql: 'UPDATE units SET whole = 1 WHERE id = ?',
    params: ['integer'],
    refuses: 'if-nothing-changed',
    conflict: null,
  },

  expireHolderOfName: {
    sql: `UPDATE transactions SET ${EXPIRE} WHERE state = 'open' AND expires_at <= ?3
      AND number = (SELECT holder FROM tokens JOIN units ON units.id = tokens.unit
        WHERE tokens.tenant = ?1 AND name = ?2)`,
    params: ['id', 'id', 'integer'],
    refuses: 'never',
  },

  /** Frees an id reserved by a transaction that was rolled back or expired. Its row is swept by internal id. */
  freeName: {
    sql: `UPDATE tokens SET name = NULL WHERE tenant = ?1 AND name = ?2 AND EXISTS
      (SELECT 1 FROM units CROSS JOIN transactions ON number = holder
        WHERE units.id = tokens.unit AND state IN ${DEAD})`,
    params: ['id', 'id'],
    refuses: 'never',
  },
} as const satisfies Record<string, Statement>
