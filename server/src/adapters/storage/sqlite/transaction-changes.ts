/** Opens, guards and ends transactions. */
import { NIL_ID } from '../../../base/id.ts'
import type { ChangeOf } from '../../../ports/change.ts'
import { deleteIndexTerms, indexTermsIn } from './index-term-rows.ts'
import { fewPending } from './long-rows.ts'
import type { Statement } from './statements.ts'
import { CONTENT } from './token-content.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'
import { EXPIRE, livesAt, numberOf } from './visibility.ts'

const HOLDER = numberOf('?1', '?2')
const SET = Object.keys(CONTENT)
  .map((it) => `${it} = it.${it}`)
  .join(', ')

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
    sql: `DELETE FROM units WHERE holder = ${HOLDER} AND whole = 1`,
    params: ['id', 'id'],
  },

  /** Applies all pending changes of a transaction, in five steps. */
  applyForgetIndexTerms: {
    sql: deleteIndexTerms(
      `SELECT tokens.tenant, tokens.serial, tokens.indexes FROM pending JOIN tokens USING (tenant, serial)
       WHERE holder = ${HOLDER} AND tokens.indexes IS NOT NULL
         AND (deleted = 1 OR ${livesAt('?3')})`,
    ),
    params: ['id', 'id', 'integer'],
  },

  applyRemovals: {
    sql: `DELETE FROM tokens WHERE (tenant, serial) IN
      (SELECT tenant, serial FROM pending WHERE holder = ${HOLDER} AND deleted = 1)`,
    params: ['id', 'id'],
  },

  /** A token that expired meanwhile is not updated. */
  applyUpdates: {
    sql: `UPDATE tokens SET ${SET} FROM pending AS it
      WHERE it.holder = ${HOLDER} AND deleted IS NULL
        AND tokens.tenant = it.tenant AND tokens.serial = it.serial AND ${livesAt('?3')}`,
    params: ['id', 'id', 'integer'],
  },

  applyIndexTerms: {
    sql: `INSERT INTO token_indexes (tenant, hash, serial) ${indexTermsIn(
      `SELECT pending.tenant, pending.serial, pending.indexes FROM pending JOIN tokens USING (tenant, serial)
       WHERE holder = ${HOLDER} AND deleted IS NULL AND pending.indexes IS NOT NULL
         AND tokens.revision = pending.revision`,
    )} ON CONFLICT DO NOTHING`,
    params: ['id', 'id'],
  },

  dropPending: {
    sql: `DELETE FROM pending WHERE holder = ${HOLDER}`,
    params: ['id', 'id'],
  },

  /**
   * Drops a few pending changes of a transaction that is rolled back. The rest locks nothing any
   * more, and is swept.
   */
  dropSomePending: {
    sql: `DELETE FROM pending WHERE (tenant, serial) IN
      (SELECT tenant, serial FROM (${fewPending(HOLDER)}))`,
    params: ['id', 'id'],
  },
} as const satisfies Record<string, Statement>

export function packOpening(
  { packer, tenantId }: SqliteUnitOfWork,
  { transaction, openMax }: ChangeOf<'open-transaction'>,
): void {
  const { id, state, createdBy, createdAt, expiresAt } = transaction
  const values = [tenantId, id, state, createdBy, createdAt, expiresAt, openMax]
  packer.step('openTransaction', values)
  packer.step('openOwnStagingBatch', [tenantId, id])
}

/**
 * Packs the end of a transaction. Making its tokens visible deletes one row, however many there
 * are; its pending changes are bounded.
 */
export function packEnd(
  { packer, tenantId }: SqliteUnitOfWork,
  { id, as, now }: ChangeOf<'end-transaction'>,
): void {
  if (as === 'expired') {
    packer.step('expireTransaction', [tenantId, id, now])
    return
  }
  packer.step('endTransaction', [tenantId, id, now, as])
  if (as === 'committed') {
    packer.step('refuseRevoked', [tenantId, id, now])
    packer.step('applyForgetIndexTerms', [tenantId, id, now])
    packer.step('applyRemovals', [tenantId, id])
    packer.step('applyUpdates', [tenantId, id, now])
    packer.step('applyIndexTerms', [tenantId, id])
    packer.step('dropPending', [tenantId, id])
    packer.step('closeStagingBatches', [tenantId, id])
  } else {
    packer.step('dropSomePending', [tenantId, id])
    packer.step('sweepOwnIndexTerms', [tenantId, id])
    packer.step('sweepOwn', [tenantId, id])
  }
  packer.step('forgetKeys', [tenantId, id])
}

export function packEnlisting(
  { packer, tenantId }: SqliteUnitOfWork,
  { transactionId, keys, now }: ChangeOf<'enlist'>,
): void {
  packer.step('requireOpen', [tenantId, transactionId, now])
  for (const { applicationId, keyId } of keys) {
    packer.step('noteKey', [tenantId, transactionId, applicationId, keyId ?? NIL_ID])
  }
}
