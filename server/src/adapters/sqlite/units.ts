import type { DatabaseSync } from 'node:sqlite'
import { findableOf } from './rows.ts'
import { termsOf } from './terms.ts'

/** Returns the first number that no unit has had. */
export function firstUnitOf(db: DatabaseSync): number {
  const row = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'units'").get()
  return Number(row?.seq ?? 0) + 1
}

/**
 * Removes what units left behind that were open when the process ended: nobody has seen it, and nobody
 * was told that it is there.
 */
export function removeLeftovers(db: DatabaseSync): void {
  const units = db.prepare('SELECT id, tenant, first_serial, last_serial FROM units').all()
  if (units.length === 0) return
  const within = 'tenant = ? AND serial BETWEEN ? AND ? AND unit = ?'
  const staged = db.prepare(`SELECT serial, indexes, metadata FROM tokens WHERE ${within}`)
  const deleteIndex = db.prepare(
    'DELETE FROM token_indexes WHERE tenant = ? AND hash = ? AND serial = ?',
  )
  const deleteTokens = db.prepare(`DELETE FROM tokens WHERE ${within}`)
  const deleteUnit = db.prepare('DELETE FROM units WHERE id = ?')
  db.exec('BEGIN IMMEDIATE')
  for (const unit of units) {
    const { id, tenant, first_serial: first, last_serial: last } = unit
    const range = [tenant!, first!, last!, id!] as const
    for (const row of staged.all(...range)) {
      for (const hash of termsOf(findableOf(row))) deleteIndex.run(tenant!, hash, row.serial!)
    }
    deleteTokens.run(...range)
    deleteUnit.run(id!)
  }
  db.exec('COMMIT')
}
