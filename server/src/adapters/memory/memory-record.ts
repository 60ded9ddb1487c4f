import { PARKED_MAX } from '../../base/limits.ts'
import {
  RECORD_BEGIN,
  chainHash,
  encodeEntry,
  eventsOf,
  type RecordEntry,
  type RecordPoint,
  type RecordSeal,
  type StoredRecordRow,
} from '../../world/record.ts'
import type { Change, Conflict } from '../../world/change.ts'
import type { RecordReader } from '../../world/store.ts'
import { Shelf, copyOf } from './shelves.ts'

type RecordChange = Extract<
  Change,
  { readonly kind: `${'append' | 'park' | 'trim' | 'seal'}-record` | `${string}-parked-record` }
>

/** The record of every tenant, in arrays: the part of the memory store that numbers and chains. */
export class MemoryRecord {
  readonly #chains: Shelf<Chain>
  readonly #parked: Shelf<Parked>

  /** What is changed can be undone by `undo`. */
  constructor(undo: (() => void)[]) {
    this.#chains = new Shelf<Chain>(undo)
    this.#parked = new Shelf<Parked>(undo)
  }

  readonly reader: RecordReader = {
    state: async (tenantId) => {
      const chain = this.#chains.find(tenantId, CHAIN)
      if (chain === null) return null
      const { removed, seal } = chain
      return copyOf({ removed, last: pointOf(chain.rows.at(-1) ?? removed), seal })
    },
    rowsAfter: async (tenantId, after, limit) =>
      copyOf(this.#rows(tenantId, (it) => it.number > after).slice(0, limit)),
    rowsBefore: async (tenantId, before, limit) =>
      copyOf(
        this.#rows(tenantId, (it) => it.number < before)
          .toReversed()
          .slice(0, limit),
      ),
    tenantIds: async (which) =>
      [...this.#chains.everywhere()]
        .filter(([, chain]) => which === 'all' || isUnsealed(chain))
        .map(([tenantId]) => tenantId),
  }

  apply(tenantId: string, change: RecordChange): Conflict | null {
    switch (change.kind) {
      case 'append-record':
        this.append(tenantId, change.entries)
        return null
      case 'park-record':
        return this.park(tenantId, change.transactionId, change.entries)
      case 'append-parked-record':
        this.appendParked(tenantId, change.transactionId)
        return null
      case 'drop-parked-record':
        this.dropParked(tenantId, change.transactionId)
        return null
      case 'trim-record':
        this.trim(tenantId, change.removed)
        return null
      case 'seal-record':
        this.seal(tenantId, change.seal)
        return null

      default:
        throw new TypeError('Cannot record: a change is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  append(tenantId: string, entries: readonly RecordEntry[]): void {
    const chain = this.#chainOf(tenantId)
    const rows = [...chain.rows]
    let last: RecordPoint = rows.at(-1) ?? chain.removed
    for (const it of entries) {
      const point = { number: last.number + 1, listed: last.listed + eventsOf(it) }
      const entry = encodeEntry(it)
      const row = { ...point, entry, hash: chainHash(last.hash, point, entry) }
      rows.push(row)
      last = row
    }
    this.#chains.put(tenantId, CHAIN, { ...chain, rows })
  }

  park(tenantId: string, transactionId: string, entries: readonly RecordEntry[]): Conflict | null {
    const before = this.#parked.find(tenantId, transactionId)?.entries ?? []
    if (before.length + entries.length > PARKED_MAX) return { kind: 'transaction-full' }
    this.#parked.put(tenantId, transactionId, { transactionId, entries: [...before, ...entries] })
    return null
  }

  appendParked(tenantId: string, transactionId: string): void {
    const parked = this.#parked.find(tenantId, transactionId)
    if (parked === null) return
    this.append(tenantId, parked.entries)
    this.dropParked(tenantId, transactionId)
  }

  dropParked(tenantId: string, transactionId: string): void {
    this.#parked.delete(tenantId, transactionId)
  }

  /** Forgets what is kept for transactions that are over. */
  keepParked(isOpen: (tenantId: string, transactionId: string) => boolean): void {
    for (const [tenantId, { transactionId }] of Array.from(this.#parked.everywhere())) {
      if (!isOpen(tenantId, transactionId)) this.#parked.delete(tenantId, transactionId)
    }
  }

  belongings(): Shelf<unknown>[] {
    return [this.#chains, this.#parked]
  }

  trim(tenantId: string, removed: RecordPoint): void {
    const chain = this.#chainOf(tenantId)
    const rows = chain.rows.filter((it) => it.number > removed.number)
    this.#chains.put(tenantId, CHAIN, { ...chain, removed, rows })
  }

  seal(tenantId: string, seal: RecordSeal): void {
    const chain = this.#chainOf(tenantId)
    if (chain.removed.number !== seal.removed.number) return
    this.#chains.put(tenantId, CHAIN, { ...chain, seal })
  }

  #chainOf(tenantId: string): Chain {
    return this.#chains.find(tenantId, CHAIN) ?? { removed: RECORD_BEGIN, rows: [], seal: null }
  }

  #rows(tenantId: string, which: (row: StoredRecordRow) => boolean): StoredRecordRow[] {
    return (this.#chains.find(tenantId, CHAIN)?.rows ?? []).filter(which)
  }
}

/** What waits for a transaction. */
interface Parked {
  readonly transactionId: string
  readonly entries: readonly RecordEntry[]
}

interface Chain {
  readonly removed: RecordPoint
  readonly rows: readonly StoredRecordRow[]
  readonly seal: RecordSeal | null
}

const CHAIN = 'record'

function isUnsealed({ rows, removed, seal }: Chain): boolean {
  return (rows.at(-1) ?? removed).number > (seal?.last.number ?? 0)
}

function pointOf({ number, listed, hash }: RecordPoint): RecordPoint {
  return { number, listed, hash }
}
