import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { CHAIN_START, chainHash, type ChainPosition } from '../../../ports/audit-log.ts'
import type { SqliteValue } from './batch.ts'
import { EarlierEvents, withoutEventsTo } from './earlier-events.ts'
import { keyOfPacked } from './ids.ts'
import { STATEMENT } from './statements.ts'

/** Tenants whose chain tip is cached. */
const CHAIN_TIPS_MAX = 10_000

/**
 * Writes the audit events of a batch: last, when it is known which of its commits succeed.
 *
 * The order of commits is decided here, so events get their numbers and hashes here: without gaps,
 * and in the same transaction as the changes they are about.
 */
export class SqliteAuditWriter {
  readonly #insert: StatementSync
  readonly #findFirst: StatementSync
  readonly #cut: StatementSync
  readonly #trim: StatementSync
  readonly #findTip: StatementSync
  readonly #moveTip: StatementSync
  readonly #findParked: StatementSync
  /** By tenant, as Latin-1; equals the database whenever no batch is running. */
  #tips = new Map<string, ChainTip>()
  #pending: SqlitePendingEvent[] = []
  readonly #earlier = new EarlierEvents()

  constructor(db: DatabaseSync) {
    this.#insert = db.prepare(
      'INSERT INTO record (tenant, number, listed, entry, hash, earlier) VALUES (?, ?, ?, ?, ?, ?)',
    )
    this.#trim = db.prepare('DELETE FROM record WHERE tenant = ? AND number <= ?')
    this.#findFirst = db.prepare(
      'SELECT number, earlier FROM record WHERE tenant = ? ORDER BY number LIMIT 1',
    )
    this.#cut = db.prepare('UPDATE record SET earlier = ? WHERE tenant = ? AND number = ?')
    this.#findTip = db.prepare('SELECT number, listed, hash FROM record_heads WHERE tenant = ?')
    this.#moveTip = db.prepare(
      `INSERT INTO record_heads
        (tenant, removed_number, removed_listed, removed_hash, number, listed, hash, sealed_number)
        VALUES (?1, 0, 0, zeroblob(32), ?2, ?3, ?4, 0)
        ON CONFLICT (tenant) DO UPDATE
        SET number = excluded.number, listed = excluded.listed, hash = excluded.hash`,
    )
    this.#findParked = db.prepare(
      `SELECT events, entry FROM record_parked WHERE tenant = ? AND transaction_id = ?
        ORDER BY position`,
    )
  }

  /** Takes a step that is about the audit log; returns whether it was one. */
  takes(statement: number, values: readonly SqliteValue[]): boolean {
    if (statement === STATEMENT.appendAuditEvent) {
      const [tenant, items, entry] = values
      this.#pending.push({ tenant, items, entry } as SqlitePendingEvent)
      return true
    }
    if (statement === STATEMENT.trimAuditLog) {
      const [tenant, number] = values
      this.#removeTo(tenant!, number as number)
      return true
    }
    if (statement !== STATEMENT.takeParkedAuditEvents) return false
    const [tenant, transaction] = values
    for (const { events: items, entry } of this.#findParked.all(tenant!, transaction!)) {
      this.#pending.push({ tenant, items, entry } as SqlitePendingEvent)
    }
    return true
  }

  /** Returns the point to go back to if the commit that begins here fails. */
  mark(): number {
    return this.#pending.length
  }

  back(mark: number): void {
    this.#pending.length = mark
  }

  begin(): void {
    this.#pending = []
    this.#earlier.take()
  }

  /** Drops the state of the batch; `made` says whether it was committed. */
  end(made: boolean): void {
    this.#pending = []
    if (!made || this.#tips.size > CHAIN_TIPS_MAX) this.#tips = new Map()
  }

  /** Writes the events taken, or throws AuditLogUnwritable. */
  write(): void {
    if (this.#pending.length === 0) return
    try {
      this.#write(this.#pending)
    } catch (cause) {
      throw new AuditLogUnwritable(cause)
    }
  }

  #write(pending: readonly SqlitePendingEvent[]): void {
    for (const [tip, events] of this.#byTip(pending)) {
      const { tenant } = tip
      for (const [n, { items, entry }] of events.entries()) {
        tip.number++
        tip.listed += items
        tip.hash = chainHash(tip.hash, tip, entry)
        if (n < events.length - 1 && !this.#earlier.isFull) {
          this.#earlier.add({ listed: tip.listed, hash: tip.hash, entry })
        } else {
          const earlier = this.#earlier.take()
          this.#insert.run(tenant, tip.number, tip.listed, entry, tip.hash, earlier)
        }
      }
      this.#moveTip.run(tenant, tip.number, tip.listed, tip.hash)
      // Copies the hash: its buffer holds hundreds.
      tip.hash = Uint8Array.from(tip.hash)
    }
  }

  #byTip(pending: readonly SqlitePendingEvent[]): Map<ChainTip, SqlitePendingEvent[]> {
    const groups = new Map<ChainTip, SqlitePendingEvent[]>()
    let tip: ChainTip | null = null
    let group: SqlitePendingEvent[] = []
    for (const it of pending) {
      if (tip === null || it.tenant !== tip.tenant) {
        tip = this.#tipOf(it.tenant)
        group = groups.get(tip) ?? []
        groups.set(tip, group)
      }
      group.push(it)
    }
    return groups
  }

  /** Removes a tenant's events up to `number`; later events in the same row stay. */
  #removeTo(tenant: NonNullable<SqliteValue>, number: number): void {
    this.#trim.run(tenant, number)
    const first = this.#findFirst.get(tenant)
    if (!(first?.earlier instanceof Uint8Array)) return
    const row = { number: Number(first.number), earlier: first.earlier }
    const kept = withoutEventsTo(number, row)
    if (kept?.length !== row.earlier.length) this.#cut.run(kept, tenant, row.number)
  }

  #tipOf(tenant: SqlitePendingEvent['tenant']): ChainTip {
    const name = keyOfPacked(tenant)
    let tip = this.#tips.get(name)
    if (tip === undefined) {
      tip = { tenant, ...this.#findPosition(tenant) }
      this.#tips.set(name, tip)
    }
    tip.tenant = tenant
    return tip
  }

  #findPosition(tenant: SqlitePendingEvent['tenant']): ChainPosition {
    const row = this.#findTip.get(tenant)
    if (row === undefined) return CHAIN_START
    return { number: Number(row.number), listed: Number(row.listed), hash: row.hash as Uint8Array }
  }
}

/** The audit log cannot be written, so nothing of the batch was. */
export class AuditLogUnwritable extends Error {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    super(`the audit log cannot be written: ${reason}`, { cause })
  }
}

/** The end of a tenant's audit log, as it grows. */
interface ChainTip {
  /** As received with the latest batch. */
  tenant: SqlitePendingEvent['tenant']
  number: number
  listed: number
  hash: Uint8Array
}

interface SqlitePendingEvent {
  readonly tenant: Uint8Array | string
  readonly items: number
  readonly entry: Uint8Array
}
