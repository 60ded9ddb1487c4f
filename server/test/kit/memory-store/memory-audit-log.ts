import type { AccessState } from '../../../src/ports/access-state.ts'
import { PARKED_MAX } from '../../../src/base/limits.ts'
import {
  CHAIN_START,
  chainHash,
  encodeAuditEvent,
  itemCountOf,
  type AuditEvent,
  type ChainPosition,
  type AuditCheckpoint,
  type StoredAuditEvent,
} from '../../../src/ports/audit-log.ts'
import type { Change, Conflict } from '../../../src/ports/change.ts'
import type { AuditLogReader } from '../../../src/ports/store.ts'
import { MemoryTable, copyOf } from './memory-table.ts'

type AuditLogChange = Extract<
  Change,
  {
    readonly kind:
      | `${'append' | 'park' | 'trim' | 'put'}-audit-${string}`
      | `${string}-parked-audit-events`
  }
>

/** The audit log of every tenant, in arrays: numbers and chains the events of the memory store. */
export class MemoryAuditLog {
  readonly #chains: MemoryTable<Chain>
  readonly #parked: MemoryTable<Parked>

  /** `undo` collects how to revert each change. */
  constructor(undo: (() => void)[]) {
    this.#chains = new MemoryTable<Chain>(undo)
    this.#parked = new MemoryTable<Parked>(undo)
  }

  readonly reader: AuditLogReader = {
    state: async (tenantId) => {
      const chain = this.#chains.find(tenantId, CHAIN)
      if (chain === null) return null
      const { removed, checkpoint, access } = chain
      return copyOf({ removed, last: positionOf(chain.rows.at(-1) ?? removed), checkpoint, access })
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
        .filter(([, chain]) => which === 'all' || isBeyondCheckpoint(chain))
        .map(([tenantId]) => tenantId),
  }

  apply(tenantId: string, change: AuditLogChange): Conflict | null {
    switch (change.kind) {
      case 'append-audit-events':
        this.append(tenantId, change.events)
        return null
      case 'park-audit-events':
        return this.park(tenantId, change.transactionId, change.events)
      case 'end-parked-audit-events':
        if (change.append) this.appendParked(tenantId, change.transactionId)
        else this.dropParked(tenantId, change.transactionId)
        return null
      case 'trim-audit-log':
        this.trim(tenantId, change.removed)
        return null
      case 'put-audit-checkpoint':
        this.checkpoint(tenantId, change.checkpoint)
        return null

      default:
        throw new TypeError('Cannot record: a change is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  append(tenantId: string, events: readonly AuditEvent[]): void {
    const chain = this.#chainOf(tenantId)
    const rows = [...chain.rows]
    let last: ChainPosition = rows.at(-1) ?? chain.removed
    for (const it of events) {
      const position = { number: last.number + 1, listed: last.listed + itemCountOf(it) }
      const entry = encodeAuditEvent(it)
      const row = { ...position, entry, hash: chainHash(last.hash, position, entry) }
      rows.push(row)
      last = row
    }
    this.#chains.put(tenantId, CHAIN, { ...chain, rows })
  }

  park(tenantId: string, transactionId: string, events: readonly AuditEvent[]): Conflict | null {
    const before = this.#parked.find(tenantId, transactionId)?.events ?? []
    if (before.length + events.length > PARKED_MAX) return { kind: 'transaction-full' }
    this.#parked.put(tenantId, transactionId, { transactionId, events: [...before, ...events] })
    return null
  }

  appendParked(tenantId: string, transactionId: string): void {
    const parked = this.#parked.find(tenantId, transactionId)
    if (parked === null) return
    this.append(tenantId, parked.events)
    this.dropParked(tenantId, transactionId)
  }

  dropParked(tenantId: string, transactionId: string): void {
    this.#parked.delete(tenantId, transactionId)
  }

  /** Drops the events kept for transactions that ended. */
  keepParked(isOpen: (tenantId: string, transactionId: string) => boolean): void {
    for (const [tenantId, { transactionId }] of Array.from(this.#parked.everywhere())) {
      if (!isOpen(tenantId, transactionId)) this.#parked.delete(tenantId, transactionId)
    }
  }

  belongings(): MemoryTable<unknown>[] {
    return [this.#chains, this.#parked]
  }

  trim(tenantId: string, removed: ChainPosition): void {
    const chain = this.#chainOf(tenantId)
    const rows = chain.rows.filter((it) => it.number > removed.number)
    this.#chains.put(tenantId, CHAIN, { ...chain, removed, rows })
  }

  checkpoint(tenantId: string, checkpoint: AuditCheckpoint): void {
    const chain = this.#chainOf(tenantId)
    if (chain.removed.number !== checkpoint.removed.number) return
    this.#chains.put(tenantId, CHAIN, { ...chain, checkpoint })
  }

  putAccess(tenantId: string, before: number, access: AccessState): Conflict | null {
    const chain = this.#chainOf(tenantId)
    if ((chain.access?.revision ?? 0) !== before) return { kind: 'access-changed' }
    this.#chains.put(tenantId, CHAIN, { ...chain, access })
    return null
  }

  #chainOf(tenantId: string): Chain {
    return (
      this.#chains.find(tenantId, CHAIN) ?? {
        removed: CHAIN_START,
        rows: [],
        checkpoint: null,
        access: null,
      }
    )
  }

  #rows(tenantId: string, which: (row: StoredAuditEvent) => boolean): StoredAuditEvent[] {
    return (this.#chains.find(tenantId, CHAIN)?.rows ?? []).filter(which)
  }
}

/** The events that wait for a transaction. */
interface Parked {
  readonly transactionId: string
  readonly events: readonly AuditEvent[]
}

interface Chain {
  readonly removed: ChainPosition
  readonly rows: readonly StoredAuditEvent[]
  readonly checkpoint: AuditCheckpoint | null
  readonly access: AccessState | null
}

const CHAIN = 'chain'

function isBeyondCheckpoint({ rows, removed, checkpoint }: Chain): boolean {
  return (rows.at(-1) ?? removed).number > (checkpoint?.last.number ?? 0)
}

function positionOf({ number, listed, hash }: ChainPosition): ChainPosition {
  return { number, listed, hash }
}
