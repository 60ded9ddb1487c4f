import type { DatabaseSync } from 'node:sqlite'
import {
  RECORD_BEGIN,
  type RecordPoint,
  type RecordSeal,
  type StoredRecordRow,
} from '../../world/record.ts'
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

/** Returns a seal as the text that is kept of it. */
export function packSeal({ removed, last, at, proof }: RecordSeal): string {
  const packed: PackedSeal = {
    removed: packPoint(removed),
    last: packPoint(last),
    at,
    proof: Buffer.from(proof).toString('base64'),
  }
  return JSON.stringify(packed)
}

interface PackedSeal {
  readonly removed: PackedPoint
  readonly last: PackedPoint
  readonly at: number
  readonly proof: string
}

interface PackedPoint {
  readonly number: number
  readonly listed: number
  readonly hash: string
}

/** A text that packSeal() did not make is a seal that proves nothing. */
function unpackSeal(text: string): RecordSeal {
  try {
    const { removed, last, at, proof } = JSON.parse(text) as PackedSeal
    return {
      removed: unpackPoint(removed),
      last: unpackPoint(last),
      at,
      proof: Uint8Array.from(Buffer.from(proof, 'base64')),
    }
  } catch {
    return { removed: RECORD_BEGIN, last: RECORD_BEGIN, at: 0, proof: new Uint8Array() }
  }
}

function packPoint({ number, listed, hash }: RecordPoint): PackedPoint {
  return { number, listed, hash: Buffer.from(hash).toString('hex') }
}

function unpackPoint({ number, listed, hash }: PackedPoint): RecordPoint {
  return { number, listed, hash: Uint8Array.from(Buffer.from(hash, 'hex')) }
}

function pointOf({ number, listed, hash }: Row): RecordPoint {
  return { number: Number(number), listed: Number(listed), hash: hash as Uint8Array }
}

function rowOf(row: Row): StoredRecordRow {
  return { ...pointOf(row), entry: row.entry as Uint8Array }
}
