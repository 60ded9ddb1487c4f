import type { DatabaseSync } from 'node:sqlite'
import { unpackSeal } from '../../world/packed-seal.ts'
import type { RecordPoint, StoredRecordRow } from '../../world/record.ts'
import type { RecordReader } from '../../world/store.ts'
import { entriesOfRow } from './earlier-entries.ts'
import { packId, unpackId } from './ids.ts'
import type { Row } from './rows.ts'

export function recordReader(db: DatabaseSync): RecordReader {
  const head = db.prepare('SELECT * FROM record_heads WHERE tenant = ?')
  // A row is its last entry's, so the first one wanted may be in a row with a number beyond it.
  const after = db.prepare('SELECT * FROM record WHERE tenant = ? AND number > ? ORDER BY number')
  const before = db.prepare(
    `SELECT * FROM record WHERE tenant = ?1 AND number <= ifnull(
       (SELECT min(number) FROM record WHERE tenant = ?1 AND number >= ?2 - 1), ?2)
     ORDER BY number DESC`,
  )
  const all = db.prepare('SELECT tenant FROM record_heads')
  const unsealed = db.prepare('SELECT tenant FROM record_heads WHERE number > sealed_number')

  return {
    state: async (tenantId) => {
      const row = head.get(packId(tenantId))
      if (row === undefined) return null
      const { removed_number, removed_listed, removed_hash, seal } = row
      return {
        removed: pointOf({ number: removed_number!, listed: removed_listed!, hash: removed_hash! }),
        last: pointOf(row),
        seal: seal === null ? null : unpackSeal(String(seal)),
      }
    },
    rowsAfter: async (tenantId, number, limit) => {
      const entries: StoredRecordRow[] = []
      for (const row of after.iterate(packId(tenantId), number)) {
        entries.push(...entriesOfRow(row).filter((it) => it.number > number))
        if (entries.length >= limit) break
      }
      return entries.slice(0, limit)
    },
    rowsBefore: async (tenantId, number, limit) => {
      const entries: StoredRecordRow[] = []
      for (const row of before.iterate(packId(tenantId), number)) {
        const ofRow = entriesOfRow(row).filter((it) => it.number < number)
        entries.push(...ofRow.toReversed())
        if (entries.length >= limit) break
      }
      return entries.slice(0, limit)
    },
    tenantIds: async (which) =>
      (which === 'all' ? all : unsealed).all().map((row) => unpackId(row.tenant)),
  }
}

function pointOf({ number, listed, hash }: Row): RecordPoint {
  return { number: Number(number), listed: Number(listed), hash: hash as Uint8Array }
}
