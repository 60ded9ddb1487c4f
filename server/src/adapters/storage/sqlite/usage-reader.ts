import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { FairSemaphore } from '../../../base/fair-semaphore.ts'
import { TimeSlice } from '../../../base/time-slice.ts'
import type { TokenReader } from '../../../ports/store.ts'
import type { TokenUsage } from '../../../ports/stored.ts'
import { openConnection } from './connection.ts'
import { EVENT_LOOP } from './event-loop.ts'
import { packId, unpackId } from './ids.ts'

/** Rows read at a time: half a millisecond. */
const ROWS_AT_ONCE = 1_000

const DAY_MS = 24 * 60 * 60 * 1000

/** Page cache of the counting connection. */
const CACHE_KIB = 256

const CLOSED = 'NOT EXISTS (SELECT 1 FROM units WHERE units.id = unit)'

/**
 * Counts tokens from stored sums, less the tokens that expired and were not swept yet.
 *
 * The expired tokens are read one by one, in chunks with a yield between them, from a single
 * snapshot. So it needs a connection of its own, opened on first use, and counts run one after
 * another, tenant by tenant.
 */
export class UsageReader {
  readonly #databasePath: string
  #db: DatabaseSync | null = null
  #statements: Record<'begin' | 'end' | 'sums' | 'expired', StatementSync> | null = null
  readonly #turns = new FairSemaphore({ max: 1 })

  constructor(databasePath: string) {
    this.#databasePath = databasePath
  }

  /** Resolves as TokenReader.usage() does. */
  usage: TokenReader['usage'] = (tenantId, span) =>
    this.#turns.run(tenantId, () => this.#count(tenantId, span))

  /** Waits for counts in progress. */
  async close(): Promise<void> {
    while (this.#turns.held > 0) await this.#turns.run('', async () => {})
    this.#db?.close()
    this.#db = null
  }

  async #count(
    tenantId: string,
    { now, since }: { readonly now: number; readonly since: number },
  ): Promise<TokenUsage[]> {
    const { begin, end, sums, expired } = (this.#statements ??= this.#prepare())
    const tenant = packId(tenantId)
    const firstDay = since / DAY_MS
    begin.run()
    try {
      const usage = new Map<string, Mutable<TokenUsage>>()
      for (const { type, count, active, last } of sums.all(firstDay, tenant)) {
        usage.set(String(type), {
          type: String(type),
          count: Number(count),
          active: Number(active),
          lastCreatedAt: Number(last),
        })
      }
      const slice = new TimeSlice(EVENT_LOOP)
      let after: [expiresAt: number, serial: string | Uint8Array] = [0, new Uint8Array(0)]
      for (;;) {
        const rows = expired.all(tenant, now, ...after, ROWS_AT_ONCE)
        for (const { type, active_at: activeAt, closed } of rows) {
          const counted = usage.get(String(type))
          if (counted === undefined || closed !== 1) continue
          counted.count--
          if (Number(activeAt) >= since) counted.active--
        }
        const last = rows.at(-1)
        if (last === undefined || rows.length < ROWS_AT_ONCE) break
        after = [Number(last.expires_at), packId(unpackId(last.serial))]
        await slice.yieldIfDue()
      }
      return [...usage.values()].filter((it) => it.count > 0)
    } finally {
      end.run()
    }
  }

  #prepare(): Record<'begin' | 'end' | 'sums' | 'expired', StatementSync> {
    const db = openConnection(this.#databasePath, { readOnly: true, cacheKiB: CACHE_KIB })
    this.#db = db
    return {
      begin: db.prepare('BEGIN'),
      end: db.prepare('COMMIT'),
      sums: db.prepare(
        `SELECT type, sum(count) AS count, sum(iif(day >= ?1, count, 0)) AS active,
           max(last_created_at) AS last
         FROM token_counts WHERE tenant = ?2 AND ${CLOSED}
         GROUP BY type ORDER BY type`,
      ),
      expired: db.prepare(
        `SELECT serial, expires_at, type, max(created_at, ifnull(modified_at, 0)) AS active_at,
           (unit IS NULL OR ${CLOSED}) AS closed
         FROM tokens INDEXED BY tokens_expiring
         WHERE tenant = ?1 AND expires_at IS NOT NULL AND expires_at <= ?2
           AND (expires_at, serial) > (?3, ?4)
         ORDER BY expires_at, serial LIMIT ?5`,
      ),
    }
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] }
