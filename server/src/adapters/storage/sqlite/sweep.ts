/** Permanently removes unreachable data, in chunks. */
import type { DatabaseSync } from 'node:sqlite'
import { TRANSACTION_KEPT_MS } from '../../../base/limits.ts'
import type { BatchPacker } from './batch.ts'
import { deleteIndexTerms } from './index-term-rows.ts'
import { SWEEP_ROWS_MAX, bytesIn, bytesOf, few, fewPending } from './long-rows.ts'
import type { Statement } from './statements.ts'
import { EXPIRE, numberOf } from './visibility.ts'

const EXPIRED = few(
  `SELECT expires_at, tenant, serial, indexes, ${bytesIn('tokens')} AS bytes FROM tokens
    WHERE expires_at <= ?1`,
  'expires_at, tenant, serial',
)

const EXPIRED_ANSWERS = few(
  `SELECT rowid AS number, expires_at, ${bytesOf(['body'])} AS bytes FROM answers
    WHERE expires_at <= ?1`,
  'expires_at, number',
)

/** A staging batch of a transaction that was rolled back or expired, the transaction's own first. */
const DEAD_STAGING_BATCH = `(SELECT units.id FROM transactions CROSS JOIN units ON holder = number
  WHERE unswept = 1 AND whole = 1 ORDER BY number, units.id LIMIT 1)`

const CLEARED = `SELECT number FROM transactions
  WHERE unswept = 1 AND NOT EXISTS (SELECT 1 FROM units WHERE holder = number) LIMIT ${SWEEP_ROWS_MAX}`

const DEAD_HOLDER = `(SELECT holder FROM units WHERE id = ${DEAD_STAGING_BATCH})`

const DEAD_PARKED = `SELECT record_parked.tenant, transaction_id, position
  FROM transactions JOIN record_parked
    ON record_parked.tenant = transactions.tenant AND transaction_id = transactions.id
  WHERE number = ${DEAD_HOLDER} LIMIT ${SWEEP_ROWS_MAX}`

const ENDED = `state IN ('committed', 'rolled_back', 'expired')`

const OWN_STAGING_BATCH = `(SELECT -number FROM transactions WHERE number = ${numberOf('?1', '?2')})`

export const SWEEP_TABLE = {
  sweepTransactions: {
    sql: `UPDATE transactions SET ${EXPIRE} WHERE number IN (
      SELECT number FROM transactions WHERE state = 'open' AND expires_at <= ?1 LIMIT ${SWEEP_ROWS_MAX})`,
    params: ['integer'],
  },
  sweepExpiredIndexTerms: {
    sql: deleteIndexTermsOf(EXPIRED),
    params: ['integer'],
  },
  sweepExpired: {
    sql: deleteTokens(EXPIRED),
    params: ['integer'],
  },
  sweepAnswers: {
    sql: `DELETE FROM answers WHERE rowid IN (SELECT number FROM (${EXPIRED_ANSWERS}))`,
    params: ['integer'],
  },
  sweepCvcs: sweepCvcs('tokens'),
  sweepPendingCvcs: sweepCvcs('pending'),

  sweepSinglesIndexTerms: {
    sql: deleteIndexTermsOf(fewSingles(DEAD_STAGING_BATCH)),
    params: [],
  },
  sweepSingles: { sql: deleteTokens(fewSingles(DEAD_STAGING_BATCH)), params: [] },
  sweepListIndexTerms: {
    sql: deleteIndexTermsOf(fewListed(DEAD_STAGING_BATCH)),
    params: [],
  },
  sweepList: { sql: deleteTokens(fewListed(DEAD_STAGING_BATCH)), params: [] },
  sweepPending: {
    sql: `DELETE FROM pending WHERE (tenant, serial) IN
      (SELECT tenant, serial FROM (${fewPending(DEAD_HOLDER)}))`,
    params: [],
  },
  /** A transaction that was rolled back or expired leaves no audit events. */
  sweepParked: {
    sql: `DELETE FROM record_parked WHERE (tenant, transaction_id, position) IN (${DEAD_PARKED})`,
    params: [],
  },
  sweepStagingBatch: {
    sql: `DELETE FROM units WHERE id = ${DEAD_STAGING_BATCH}
      AND NOT EXISTS (${singles(DEAD_STAGING_BATCH)}) AND NOT EXISTS (${listed(DEAD_STAGING_BATCH)})
      AND NOT EXISTS (SELECT 1 FROM pending WHERE holder = ${DEAD_HOLDER}) AND NOT EXISTS (${DEAD_PARKED})`,
    params: [],
  },
  /** A transaction that expired leaves the keys that wrote in it. Each is a small row, and there are few. */
  sweepKeys: {
    sql: `DELETE FROM transaction_keys WHERE (tenant, transaction_id) IN
      (SELECT tenant, id FROM transactions WHERE number IN (${CLEARED}))`,
    params: [],
  },
  sweepMarks: {
    sql: `UPDATE transactions SET unswept = NULL WHERE number IN (${CLEARED})`,
    params: [],
  },
  /** Removes ended transactions whose expiry was at or before ?1, whenever they ended. */
  sweepEnded: {
    sql: `DELETE FROM transactions WHERE number IN (
      SELECT number FROM transactions WHERE ${ENDED} AND expires_at <= ?1
        AND unswept IS NULL
      LIMIT ${SWEEP_ROWS_MAX})`,
    params: ['integer'],
  },

  /** The same for a transaction just rolled back: most are small and removed entirely here. */
  sweepOwnIndexTerms: {
    sql: deleteIndexTermsOf(fewSingles(OWN_STAGING_BATCH)),
    params: ['id', 'id'],
  },
  sweepOwn: {
    sql: deleteTokens(fewSingles(OWN_STAGING_BATCH)),
    params: ['id', 'id'],
  },
} as const satisfies Record<string, Statement>

/** Packs a chunk of the sweep; forgets ended transactions whose expiry was at or before `forgotten`. */
export function packSweep(packer: BatchPacker, now: number, forgotten: number): void {
  packer.step('sweepTransactions', [now])
  packer.step('sweepExpiredIndexTerms', [now])
  packer.step('sweepExpired', [now])
  packer.step('sweepCvcs', [now])
  packer.step('sweepAnswers', [now])
  packer.step('sweepPendingCvcs', [now])
  packer.step('sweepSinglesIndexTerms', [])
  packer.step('sweepSingles', [])
  packer.step('sweepListIndexTerms', [])
  packer.step('sweepList', [])
  packer.step('sweepPending', [])
  packer.step('sweepParked', [])
  packer.step('sweepStagingBatch', [])
  packer.step('sweepKeys', [])
  packer.step('sweepMarks', [])
  packer.step('sweepEnded', [forgotten])
}

/** Sums the bytes removed when transaction ?2 of tenant ?1 is rolled back. */
export const DROPPED = `SELECT
  ifnull((SELECT sum(bytes) FROM (${fewPending(numberOf('?1', '?2'))})), 0)
  + ifnull((SELECT sum(bytes) FROM (${fewSingles(OWN_STAGING_BATCH)})), 0) AS bytes`

/** Finds whether a sweep chunk would find anything, for the parameters `now` and `forgotten`. */
export const ANYTHING_TO_SWEEP = `SELECT
  EXISTS (SELECT 1 FROM tokens WHERE expires_at <= ?1)
  OR EXISTS (SELECT 1 FROM tokens WHERE cvc_expires_at <= ?1)
  OR EXISTS (SELECT 1 FROM answers WHERE expires_at <= ?1)
  OR EXISTS (SELECT 1 FROM pending WHERE cvc_expires_at <= ?1)
  OR EXISTS (SELECT 1 FROM transactions WHERE state = 'open' AND expires_at <= ?1)
  OR ${DEAD_STAGING_BATCH} IS NOT NULL
  OR EXISTS (${CLEARED})
  OR EXISTS (SELECT 1 FROM transactions WHERE ${ENDED}
    AND expires_at <= ?2 AND unswept IS NULL)
  AS anything`

/** Returns a check whether there is anything to sweep, so that idle sweeps write nothing. */
export function sweepLook(db: DatabaseSync): (now: number) => boolean {
  const look = db.prepare(ANYTHING_TO_SWEEP)
  return (now) => look.get(now, now - TRANSACTION_KEPT_MS)!['anything'] === 1
}

function sweepCvcs(table: string): Statement {
  return {
    sql: `UPDATE ${table} SET cvc = NULL, cvc_expires_at = NULL WHERE (tenant, serial) IN (
      SELECT tenant, serial FROM ${table} WHERE cvc_expires_at <= ?1 LIMIT ${SWEEP_ROWS_MAX})`,
    params: ['integer'],
  }
}

/** Selects the tokens in a transaction's own staging batch. */
function singles(stagingBatch: string): string {
  return `SELECT unit, tenant, serial, indexes, ${bytesIn('tokens')} AS bytes FROM tokens
    WHERE unit < 0 AND unit = ${stagingBatch}`
}

/** Selects the tokens of a long list. */
function listed(stagingBatch: string): string {
  return `SELECT tokens.tenant, tokens.serial, tokens.indexes, ${bytesIn('tokens')} AS bytes
    FROM units CROSS JOIN tokens ON tokens.tenant = units.tenant
      AND tokens.serial BETWEEN first_serial AND last_serial AND tokens.unit = units.id
    WHERE units.id = ${stagingBatch} AND units.id > 0`
}

function fewSingles(stagingBatch: string): string {
  return few(singles(stagingBatch), 'unit, tenant, serial')
}

function fewListed(stagingBatch: string): string {
  return few(listed(stagingBatch), 'tenant, serial')
}

function deleteIndexTermsOf(source: string): string {
  return deleteIndexTerms(
    `SELECT tenant, serial, indexes FROM (${source}) WHERE indexes IS NOT NULL`,
  )
}

function deleteTokens(source: string): string {
  return `DELETE FROM tokens WHERE (tenant, serial) IN (SELECT tenant, serial FROM (${source}))`
}
