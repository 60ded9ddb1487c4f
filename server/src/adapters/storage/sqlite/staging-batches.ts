import type { DatabaseSync } from 'node:sqlite'
import { unpackIndexes } from '../../../ports/packed-token.ts'
import type { Statement } from './statements.ts'
import { numberOf } from './visibility.ts'

export const STAGING_BATCH_TABLE = {
  openStagingBatch: {
    sql: 'INSERT INTO units (id, tenant, first_serial, last_serial) VALUES (?, ?, ?, ?)',
    params: ['integer', 'id', 'id', 'id'],
    refuses: 'if-nothing-changed',
    conflict: null,
    plain: true,
  },

  closeStagingBatch: {
    sql: 'DELETE FROM units WHERE id = ?',
    params: ['integer'],
    refuses: 'if-nothing-changed',
    conflict: null,
    plain: true,
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
} as const satisfies Record<string, Statement>

/**
 * Returns the first staging batch number never used. Transactions have numbers of their own, which
 * are negative.
 */
export function firstStagingBatchOf(db: DatabaseSync): number {
  const row = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'units'").get()
  return Math.max(0, Number(row?.seq ?? 0)) + 1
}

/**
 * Removes staging batches that were unfinished when the process ended. Their tokens were never
 * visible, and their commits never acknowledged. Tokens that wait for the commit of a transaction
 * stay.
 */
export function removeLeftovers(db: DatabaseSync): void {
  const stagingBatches = db
    .prepare(
      'SELECT id, tenant, first_serial, last_serial FROM units WHERE holder IS NULL OR whole = 0',
    )
    .all()
  if (stagingBatches.length === 0) return
  const within = 'tenant = ? AND serial BETWEEN ? AND ? AND unit = ?'
  const staged = db.prepare(`SELECT serial, indexes FROM tokens WHERE ${within}`)
  const deleteIndex = db.prepare(
    'DELETE FROM token_indexes WHERE tenant = ? AND hash = ? AND serial = ?',
  )
  const deleteTokens = db.prepare(`DELETE FROM tokens WHERE ${within}`)
  const deleteStagingBatch = db.prepare('DELETE FROM units WHERE id = ?')
  db.exec('BEGIN IMMEDIATE')
  for (const stagingBatch of stagingBatches) {
    const { id, tenant, first_serial: first, last_serial: last } = stagingBatch
    const range = [tenant!, first!, last!, id!] as const
    for (const { serial: internalId, indexes } of staged.all(...range)) {
      if (!(indexes instanceof Uint8Array)) continue
      for (const hash of unpackIndexes(indexes)) deleteIndex.run(tenant!, hash, internalId!)
    }
    deleteTokens.run(...range)
    deleteStagingBatch.run(id!)
  }
  db.exec('COMMIT')
}
