import {
  chainHash,
  encodeAuditEvent,
  itemCountOf,
  type AuditEvent,
  type ChainPosition,
} from '../../../ports/audit-log.ts'
import { allOf } from './all-of.ts'
import { columnsOf, rowsFrom } from './several-rows.ts'
import type { PostgresRow } from './rows.ts'
import { kept, type Session } from './session.ts'

/** An audit event waiting to be appended. */
export interface PostgresPendingEvent {
  readonly items: number
  readonly entry: Uint8Array
}

export function pendingOf(event: AuditEvent): PostgresPendingEvent {
  return { items: itemCountOf(event), entry: encodeAuditEvent(event) }
}

const ROW = {
  tenant: 'uuid',
  number: 'bigint',
  listed: 'bigint',
  entry: 'bytea',
  hash: 'bytea',
} as const

const TIP = { tenant: 'uuid', number: 'bigint', listed: 'bigint', hash: 'bytea' } as const

/** Fails if an event's number is taken, which fails the whole transaction. */
const INSERT = kept(
  'insert-audit-events',
  `INSERT INTO record (${Object.keys(ROW).join(', ')}) SELECT * FROM ${rowsFrom(ROW, 'rows')}`,
)

const MOVE_TIPS = kept(
  'move-chain-tips',
  `UPDATE tenant_heads SET number = ends.number, listed = ends.listed, hash = ends.hash
    FROM ${rowsFrom(TIP, 'ends')} WHERE tenant_heads.tenant = ends.tenant`,
)

/** Audit events per INSERT statement. */
const ROWS_AT_ONCE = 1_000

/**
 * Appends to the audit logs of tenants whose chain tips are locked: numbers and chains the events in the order they
 * were added. The lock excludes every other writer, on any server.
 */
export class PostgresAuditWriter {
  readonly #tips: Map<string, ChainPosition>
  #pending: { readonly tenant: string; readonly it: PostgresPendingEvent }[] = []

  /** `tips` are rows of tenant_heads. */
  constructor(tips: readonly PostgresRow[]) {
    this.#tips = new Map(tips.map((row) => [String(row.tenant), positionOf(row)]))
  }

  /** The tips after the events written so far, by tenant. */
  get tips(): ReadonlyMap<string, ChainPosition> {
    return this.#tips
  }

  append(tenant: string, events: readonly PostgresPendingEvent[]): void {
    for (const it of events) this.#pending.push({ tenant, it })
  }

  /**
   * Writes the events appended since the last call. Throws synchronously if they cannot be sent, because COMMIT must
   * not follow then.
   */
  write(session: Session): Promise<unknown> {
    const moved = new Set<string>()
    const rows: (string | number | Uint8Array)[][] = []
    for (const { tenant, it } of this.#pending) {
      const before = this.#tips.get(tenant)!
      const position = { number: before.number + 1, listed: before.listed + it.items }
      const hash = chainHash(before.hash, position, it.entry)
      this.#tips.set(tenant, { ...position, hash })
      moved.add(tenant)
      rows.push([tenant, position.number, position.listed, it.entry, hash])
    }
    this.#pending = []
    if (moved.size === 0) return Promise.resolve()
    const writes: Promise<number>[] = []
    for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
      const chunk = rows.slice(at, at + ROWS_AT_ONCE)
      writes.push(session.run(INSERT, columnsOf(ROW, chunk)))
    }
    const ends = [...moved].map((tenant) => {
      const { number, listed, hash } = this.#tips.get(tenant)!
      return [tenant, number, listed, hash]
    })
    writes.push(session.run(MOVE_TIPS, columnsOf(TIP, ends)))
    return allOf(writes)
  }
}

export function positionOf({ number, listed, hash }: PostgresRow): ChainPosition {
  return { number: Number(number), listed: Number(listed), hash: hash as Uint8Array }
}
