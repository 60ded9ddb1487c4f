import {
  chainHash,
  encodeEntry,
  eventsOf,
  type RecordEntry,
  type RecordPoint,
} from '../../world/record.ts'
import { allOf } from './all-of.ts'
import { columnsOf, rowsFrom } from './bulk.ts'
import type { Row } from './rows.ts'
import { kept, type Session } from './session.ts'

/** An entry that is to be appended. */
export interface Pending {
  readonly events: number
  readonly entry: Uint8Array
}

export function pendingOf(entry: RecordEntry): Pending {
  return { events: eventsOf(entry), entry: encodeEntry(entry) }
}

const ROW = {
  tenant: 'uuid',
  number: 'bigint',
  listed: 'bigint',
  entry: 'bytea',
  hash: 'bytea',
} as const

const HEAD = { tenant: 'uuid', number: 'bigint', listed: 'bigint', hash: 'bytea' } as const

/** Fails where the place of an entry is taken, and so does the transaction. */
const INSERT = kept(
  'insert-record',
  `INSERT INTO record (${Object.keys(ROW).join(', ')}) SELECT * FROM ${rowsFrom(ROW, 'rows')}`,
)

const MOVE_HEADS = kept(
  'move-heads',
  `UPDATE tenant_heads SET number = ends.number, listed = ends.listed, hash = ends.hash
    FROM ${rowsFrom(HEAD, 'ends')} WHERE tenant_heads.tenant = ends.tenant`,
)

/** Entries that go to the database in one statement. */
const ROWS_AT_ONCE = 1_000

/**
 * Appends to the records of tenants whose heads are locked: numbers and chains entries in the order in which they
 * were added. Nobody else can be doing so, on whatever server.
 */
export class RecordWriter {
  readonly #heads: Map<string, RecordPoint>
  #pending: { readonly tenant: string; readonly it: Pending }[] = []

  /** `heads` are rows of tenant_heads. */
  constructor(heads: readonly Row[]) {
    this.#heads = new Map(heads.map((row) => [String(row.tenant), pointOf(row)]))
  }

  append(tenant: string, entries: readonly Pending[]): void {
    for (const it of entries) this.#pending.push({ tenant, it })
  }

  /** Writes what was appended since the last time. Throws at once what keeps it from being sent: COMMIT must not follow then. */
  write(session: Session): Promise<unknown> {
    const moved = new Set<string>()
    const rows: (string | number | Uint8Array)[][] = []
    for (const { tenant, it } of this.#pending) {
      const before = this.#heads.get(tenant)!
      const point = { number: before.number + 1, listed: before.listed + it.events }
      const hash = chainHash(before.hash, point, it.entry)
      this.#heads.set(tenant, { ...point, hash })
      moved.add(tenant)
      rows.push([tenant, point.number, point.listed, it.entry, hash])
    }
    this.#pending = []
    if (moved.size === 0) return Promise.resolve()
    const writes: Promise<number>[] = []
    for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
      const slice = rows.slice(at, at + ROWS_AT_ONCE)
      writes.push(session.run(INSERT, columnsOf(ROW, slice)))
    }
    const ends = [...moved].map((tenant) => {
      const { number, listed, hash } = this.#heads.get(tenant)!
      return [tenant, number, listed, hash]
    })
    writes.push(session.run(MOVE_HEADS, columnsOf(HEAD, ends)))
    return allOf(writes)
  }
}

export function pointOf({ number, listed, hash }: Row): RecordPoint {
  return { number: Number(number), listed: Number(listed), hash: hash as Uint8Array }
}
