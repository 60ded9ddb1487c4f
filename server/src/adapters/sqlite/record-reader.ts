import type { DatabaseSync } from 'node:sqlite'
import { unpackSeal } from '../../world/packed-seal.ts'
import type { RecordPoint, StoredRecordRow } from '../../world/record.ts'
import type { RecordReader } from '../../world/store.ts'
import { packId, unpackId } from './ids.ts'
import type { Row } from './rows.ts'

export function recordReader(db: DatabaseSync): RecordReader {
  const head = db.prepare('SELECT * FROM record_heads WHERE tenant = ?')
  const after = db.prepare(
    'SELECT * FROM record WHERE tenant = ? AND number > ? ORDER BY number LIMIT ?',
  )
  const before = db.prepare(
    'SELECT * FROM record WHERE tenant = ? AND number < ? ORDER BY number DESC LIMIT ?',
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
    rowsAfter: async (tenantId, number, limit) =>
      after.all(packId(tenantId), number, limit).map(rowOf),
    rowsBefore: async (tenantId, number, limit) =>
      before.all(packId(tenantId), number, limit).map(rowOf),
    tenantIds: async (which) =>
      (which === 'all' ? all : unsealed).all().map((row) => unpackId(row.tenant)),
  }
}

function pointOf({ number, listed, hash }: Row): RecordPoint {
  return { number: Number(number), listed: Number(listed), hash: hash as Uint8Array }
}

function rowOf(row: Row): StoredRecordRow {
  return { ...pointOf(row), entry: row.entry as Uint8Array }
}
