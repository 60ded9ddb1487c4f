/** Statements that change and delete tokens, at once and in transactions. */
import { PENDING_BYTES_MAX, PENDING_LIGHT_BYTES_MAX, PENDING_MAX } from '../../../base/limits.ts'
import { bytesIn, fewPending } from './long-rows.ts'
import { deleteIndexes, hashesOf } from './packed-indexes.ts'
import type { Param, Statement } from './statements.ts'
import { BY_FINGERPRINT, DEAD, EXPIRE, VISIBLE, livesAt, madeIn, numberOf } from './visibility.ts'

/** Columns that an update replaces, in the order of the parameters. */
const CHANGING = {
  containers: 'text',
  data: 'bytes',
  cvc: 'bytes',
  cvc_expires_at: 'integer',
  metadata: 'text',
  details: 'text',
  fingerprint: 'text',
  deduplicate: 'integer',
  indexes: 'bytes',
  expires_at: 'integer',
  modified_by: 'id',
  modified_at: 'integer',
  revision: 'integer',
} as const satisfies Record<string, Param>

const COLUMNS = Object.keys(CHANGING)

/** Identifies the token, the revision read, the time and the transaction. */
const WHICH: readonly Param[] = ['id', 'id', 'integer', 'integer', 'id']
const [TENANT, INTERNAL_ID, REVISION, NOW] = ['?1', '?2', '?3', '?4']
const HOLDER = numberOf(TENANT, '?5')
const THE_TOKEN = `tokens.tenant = ${TENANT} AND tokens.serial = ${INTERNAL_ID} AND ${livesAt(NOW)}`
const AS_READ = `coalesce(revision, 0) = ${REVISION}`
/**
 * The transaction's own pending revision counts, if it has one. No other transaction has one here:
 * refuseLocked ran before.
 */
const AS_READ_WITHIN = `coalesce((SELECT pending.revision FROM pending
  WHERE pending.tenant = ${TENANT} AND pending.serial = ${INTERNAL_ID}), tokens.revision, 0) = ${REVISION}`

const SET = COLUMNS.map((column, n) => `${column} = ?${WHICH.length + n + 1}`).join(', ')
const UPDATE: readonly Param[] = [...WHICH, ...Object.values(CHANGING)]

export const CHANGE_TABLE = {
  /** The first commit to find a transaction past its end expires it, before acting on it. */
  expireHolder: {
    sql: `UPDATE transactions SET ${EXPIRE} WHERE state = 'open' AND expires_at <= ?3
      AND number = (SELECT holder FROM pending WHERE tenant = ?1 AND serial = ?2)`,
    params: ['id', 'id', 'integer'],
    refuses: 'never',
  },

  unlock: {
    sql: `DELETE FROM pending WHERE tenant = ?1 AND serial = ?2
      AND EXISTS (SELECT 1 FROM transactions WHERE number = holder AND state IN ${DEAD})`,
    params: ['id', 'id'],
    refuses: 'never',
  },

  /** If the transaction id is null, every lock belongs to another transaction. */
  refuseLocked: {
    sql: `SELECT 1 FROM pending WHERE tenant = ?1 AND serial = ?2
      AND holder IS NOT ${numberOf('?1', '?3')}`,
    params: ['id', 'id', 'id'],
    refuses: 'if-found',
    conflict: 'token-locked',
  },

  refuseOtherDuplicate: {
    sql: `SELECT 1 FROM ${BY_FINGERPRINT}
      WHERE tenant = ?1 AND type = ?2 AND fingerprint = ?3 AND serial <> ?5 AND ${livesAt('?4')}
        AND ${uncommittedIn('')}`,
    params: ['id', 'text', 'text', 'integer', 'id'],
    refuses: 'if-found',
    conflict: 'fingerprint-taken',
  },

  /** From the transaction's view: with its own tokens and pending changes, without the tokens it deleted. */
  refuseDuplicateWithin: {
    sql: `SELECT 1 FROM ${BY_FINGERPRINT}
      WHERE tenant = ?1 AND type = ?2 AND fingerprint = ?3 AND serial <> ?5 AND ${livesAt('?4')}
        AND ${uncommittedIn(`AND holder <> ${numberOf('?1', '?6')}`)}
        AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.tenant = tokens.tenant
          AND pending.serial = tokens.serial AND holder = ${numberOf('?1', '?6')})
      UNION ALL
      SELECT 1 FROM pending JOIN tokens USING (tenant, serial)
      WHERE holder = ${numberOf('?1', '?6')} AND pending.fingerprint = ?3 AND type = ?2
        AND serial <> ?5 AND deleted IS NULL AND ${livesAt('?4', 'pending')} AND ${livesAt('?4')}`,
    params: ['id', 'text', 'text', 'integer', 'id', 'id'],
    refuses: 'if-found',
    conflict: 'fingerprint-taken',
  },

  forgetIndexes: {
    sql: deleteIndexes(
      'SELECT tenant, serial, indexes FROM tokens WHERE tenant = ?1 AND serial = ?2 AND indexes IS NOT NULL',
    ),
    params: ['id', 'id'],
    refuses: 'never',
  },

  updateToken: {
    sql: `UPDATE tokens SET ${SET} WHERE ${THE_TOKEN} AND ${AS_READ} AND ${VISIBLE} AND ?5 IS NULL`,
    params: UPDATE,
    refuses: 'if-nothing-changed',
    conflict: 'token-changed',
  },

  updateOwnToken: {
    sql: `UPDATE tokens SET ${SET} WHERE ${THE_TOKEN} AND ${AS_READ} AND ${madeIn(HOLDER)}`,
    params: UPDATE,
    refuses: 'if-nothing-changed',
    conflict: 'token-changed',
  },

  pendUpdate: {
    sql: pend(
      COLUMNS.map((_column, n) => `?${WHICH.length + n + 1}`),
      'NULL',
    ),
    params: UPDATE,
    refuses: 'if-nothing-changed',
    conflict: 'token-changed',
  },

  removeToken: {
    sql: `DELETE FROM tokens WHERE ${THE_TOKEN} AND ${AS_READ} AND ${VISIBLE} AND ?5 IS NULL`,
    params: WHICH,
    refuses: 'if-nothing-changed',
    conflict: 'token-changed',
  },

  removeOwnToken: {
    sql: `DELETE FROM tokens WHERE ${THE_TOKEN} AND ${AS_READ} AND ${madeIn(HOLDER)}`,
    params: WHICH,
    refuses: 'if-nothing-changed',
    conflict: 'token-changed',
  },

  /** -1 is a revision that no caller can have read. */
  pendRemoval: {
    sql: pend(
      COLUMNS.map((column) => (column === 'revision' ? '-1' : 'NULL')),
      '1',
    ),
    params: WHICH,
    refuses: 'if-nothing-changed',
    conflict: 'token-changed',
  },

  /** Runs after the change of token ?3 was added. */
  refuseFull: {
    sql: `SELECT 1 WHERE
      (SELECT count(*) FROM pending WHERE holder = ${numberOf('?1', '?2')}) > ${PENDING_MAX}
      OR (
        (${held('pending.tenant = ?1 AND pending.serial = ?3')}) > ${PENDING_LIGHT_BYTES_MAX}
        AND (${held(`holder = ${numberOf('?1', '?2')}`)}) > ${PENDING_BYTES_MAX}
      )`,
    params: ['id', 'id', 'id'],
    refuses: 'if-found',
    conflict: 'transaction-full',
  },

  /** Applies all pending changes of a transaction, in five steps. */
  applyForgetIndexes: {
    sql: deleteIndexes(
      `SELECT tokens.tenant, tokens.serial, tokens.indexes FROM pending JOIN tokens USING (tenant, serial)
       WHERE holder = ${numberOf('?1', '?2')} AND tokens.indexes IS NOT NULL
         AND (deleted = 1 OR ${livesAt('?3')})`,
    ),
    params: ['id', 'id', 'integer'],
    refuses: 'never',
  },

  applyRemovals: {
    sql: `DELETE FROM tokens WHERE (tenant, serial) IN
      (SELECT tenant, serial FROM pending WHERE holder = ${numberOf('?1', '?2')} AND deleted = 1)`,
    params: ['id', 'id'],
    refuses: 'never',
  },

  /** A token that expired meanwhile is not updated. */
  applyUpdates: {
    sql: `UPDATE tokens SET ${COLUMNS.map((it) => `${it} = it.${it}`).join(', ')}
      FROM pending AS it
      WHERE it.holder = ${numberOf('?1', '?2')} AND deleted IS NULL
        AND tokens.tenant = it.tenant AND tokens.serial = it.serial AND ${livesAt('?3')}`,
    params: ['id', 'id', 'integer'],
    refuses: 'never',
  },

  applyIndexes: {
    sql: `INSERT INTO token_indexes (tenant, hash, serial) ${hashesOf(
      `SELECT pending.tenant, pending.serial, pending.indexes FROM pending JOIN tokens USING (tenant, serial)
       WHERE holder = ${numberOf('?1', '?2')} AND deleted IS NULL AND pending.indexes IS NOT NULL
         AND tokens.revision = pending.revision`,
    )} ON CONFLICT DO NOTHING`,
    params: ['id', 'id'],
    refuses: 'never',
  },

  dropPending: {
    sql: `DELETE FROM pending WHERE holder = ${numberOf('?1', '?2')}`,
    params: ['id', 'id'],
    refuses: 'never',
  },

  /**
   * Drops a few pending changes of a transaction that is rolled back. The rest locks nothing any
   * more, and is swept.
   */
  dropSomePending: {
    sql: `DELETE FROM pending WHERE (tenant, serial) IN
      (SELECT tenant, serial FROM (${fewPending(numberOf('?1', '?2'))}))`,
    params: ['id', 'id'],
    refuses: 'never',
  },
} as const satisfies Record<string, Statement>

/**
 * Sums the bytes moved when pending changes are applied to their tokens. For a token that expired
 * and was removed, only those of the change.
 */
export function held(which: string): string {
  return `SELECT sum(${bytesIn('pending')} + ${bytesIn('tokens')})
    FROM pending LEFT JOIN tokens USING (tenant, serial) WHERE ${which}`
}

/** Holds for a token that belongs to no uncommitted transaction, or only to one that `others` excludes. */
function uncommittedIn(others: string): string {
  return `(unit IS NULL OR NOT EXISTS (SELECT 1 FROM units
    WHERE units.id = tokens.unit AND holder IS NOT NULL ${others}))`
}

function pend(values: readonly string[], deleted: string): string {
  return `INSERT INTO pending (tenant, serial, holder, deleted, ${COLUMNS.join(', ')})
    SELECT ${TENANT}, ${INTERNAL_ID}, ${HOLDER}, ${deleted}, ${values.join(', ')}
    FROM tokens WHERE ${THE_TOKEN} AND ${VISIBLE} AND ${AS_READ_WITHIN}
    ON CONFLICT (tenant, serial) DO UPDATE SET
      ${['deleted', ...COLUMNS].map((it) => `${it} = excluded.${it}`).join(', ')}`
}
