/** Updates and deletes tokens: at once, or pending until their transaction commits. */
import { PENDING_BYTES_MAX, PENDING_LIGHT_BYTES_MAX, PENDING_MAX } from '../../../base/limits.ts'
import type { ChangeOf } from '../../../ports/change.ts'
import type { FoundToken } from '../../../ports/stored.ts'
import type { SqliteValue } from './batch.ts'
import { packDuplicateCheck } from './duplicate-checks.ts'
import { deleteIndexTerms, packIndexTerms } from './index-term-rows.ts'
import { bytesIn } from './long-rows.ts'
import type { Param, Statement } from './statements.ts'
import { CONTENT, packContent } from './token-content.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'
import { DEAD, EXPIRE, VISIBLE, livesAt, madeIn, numberOf } from './visibility.ts'

const COLUMNS = Object.keys(CONTENT)

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
const UPDATE: readonly Param[] = [...WHICH, ...Object.values(CONTENT)]

export const TOKEN_CHANGE_TABLE = {
  /** The first commit to find a transaction past its end expires it, before acting on it. */
  expireHolder: {
    sql: `UPDATE transactions SET ${EXPIRE} WHERE state = 'open' AND expires_at <= ?3
      AND number = (SELECT holder FROM pending WHERE tenant = ?1 AND serial = ?2)`,
    params: ['id', 'id', 'integer'],
  },

  unlock: {
    sql: `DELETE FROM pending WHERE tenant = ?1 AND serial = ?2
      AND EXISTS (SELECT 1 FROM transactions WHERE number = holder AND state IN ${DEAD})`,
    params: ['id', 'id'],
  },

  /** If the transaction id is null, every lock belongs to another transaction. */
  refuseLocked: {
    sql: `SELECT 1 FROM pending WHERE tenant = ?1 AND serial = ?2
      AND holder IS NOT ${numberOf('?1', '?3')}`,
    params: ['id', 'id', 'id'],
    refuses: 'if-found',
    conflict: 'token-locked',
  },

  forgetIndexTerms: {
    sql: deleteIndexTerms(
      'SELECT tenant, serial, indexes FROM tokens WHERE tenant = ?1 AND serial = ?2 AND indexes IS NOT NULL',
    ),
    params: ['id', 'id'],
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
} as const satisfies Record<string, Statement>

/**
 * Sums the bytes moved when pending changes are applied to their tokens. For a token that expired
 * and was removed, only those of the change.
 */
export function held(which: string): string {
  return `SELECT sum(${bytesIn('pending')} + ${bytesIn('tokens')})
    FROM pending LEFT JOIN tokens USING (tenant, serial) WHERE ${which}`
}

function pend(values: readonly string[], deleted: string): string {
  return `INSERT INTO pending (tenant, serial, holder, deleted, ${COLUMNS.join(', ')})
    SELECT ${TENANT}, ${INTERNAL_ID}, ${HOLDER}, ${deleted}, ${values.join(', ')}
    FROM tokens WHERE ${THE_TOKEN} AND ${VISIBLE} AND ${AS_READ_WITHIN}
    ON CONFLICT (tenant, serial) DO UPDATE SET
      ${['deleted', ...COLUMNS].map((it) => `${it} = excluded.${it}`).join(', ')}`
}

/**
 * Packs an update: applied at once, applied to a token of its own transaction, or pending until its
 * transaction commits.
 */
export function packUpdate(
  unitOfWork: SqliteUnitOfWork,
  { token, unlessDuplicate, now }: ChangeOf<'update-token'>,
): void {
  const { packer, tenantId, within } = unitOfWork
  const { internalId } = token
  packLock(unitOfWork, internalId, now)
  if (unlessDuplicate && token.fingerprint !== null) {
    packDuplicateCheck(unitOfWork, token, { now, isNew: false })
  }
  const values: SqliteValue[] = which(unitOfWork, token, token.revision - 1, now)
  packContent(values, values.length, token)
  values.push(token.modifiedBy, token.modifiedAt, token.revision)
  if (within !== null && !token.uncommitted) {
    packer.step('pendUpdate', values)
    packer.step('refuseFull', [tenantId, within, internalId])
    return
  }
  packer.step('forgetIndexTerms', [tenantId, internalId])
  packer.step(within === null ? 'updateToken' : 'updateOwnToken', values)
  packIndexTerms(unitOfWork, 'insertIndexTerm', token)
}

/** Packs a deletion, in the same three ways. */
export function packDeletion(
  unitOfWork: SqliteUnitOfWork,
  { token, now }: ChangeOf<'delete-token'>,
): void {
  const { packer, tenantId, within } = unitOfWork
  packLock(unitOfWork, token.internalId, now)
  const values = which(unitOfWork, token, token.revision, now)
  if (within !== null && !token.uncommitted) {
    packer.step('pendRemoval', values)
    packer.step('refuseFull', [tenantId, within, token.internalId])
    return
  }
  packer.step('forgetIndexTerms', [tenantId, token.internalId])
  packer.step(within === null ? 'removeToken' : 'removeOwnToken', values)
}

/** Releases the locks of transactions that ended; a lock of any other transaction refuses the change. */
function packLock(
  { packer, tenantId, within }: SqliteUnitOfWork,
  internalId: string,
  now: number,
): void {
  packer.step('expireHolder', [tenantId, internalId, now])
  packer.step('unlock', [tenantId, internalId])
  packer.step('refuseLocked', [tenantId, internalId, within])
}

function which(
  { tenantId, within }: SqliteUnitOfWork,
  { internalId }: FoundToken,
  revision: number,
  now: number,
): SqliteValue[] {
  return [tenantId, internalId, revision, now, within]
}
