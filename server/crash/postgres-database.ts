/** As database.ts, of a PostgreSQL database: SQL of our own, past the store. */
import pg from 'pg'
import { firstFlaw } from '../src/audit/chain-flaws.ts'
import { CHAIN_START, decodeAuditEvent, type StoredAuditEvent } from '../src/ports/audit-log.ts'

/** The stored data that can be read without a key. */
export class PostgresDatabase {
  readonly #client: pg.Client
  /** A connection answers one question at a time. */
  #asked: Promise<unknown> = Promise.resolve()

  private constructor(client: pg.Client) {
    this.#client = client
  }

  static async open(url: string): Promise<PostgresDatabase> {
    const client = new pg.Client({
      connectionString: url,
      types: { getTypeParser: parserOf },
      // Holding a lock for this long is a fault in itself.
      lock_timeout: LOCK_MS_MAX,
    })
    // The next query reports the error.
    client.on('error', () => {})
    await client.connect()
    return new PostgresDatabase(client)
  }

  /** Runs SQL and returns the rows of its last statement. */
  async ask<Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
    const answer = this.#asked.then(() => this.#client.query<Row>(sql, values))
    this.#asked = answer.catch(() => {})
    return (await answer).rows
  }

  /** Resolves when every transaction that has locked a tenant has ended. */
  async settled(): Promise<void> {
    await this.ask('SELECT 1 FROM tenant_heads FOR UPDATE')
  }

  /** Ids of the tokens that readers may see, made at `since` (epoch milliseconds) or later. */
  async visibleTokens(since = 0): Promise<string[]> {
    await this.settled()
    const rows = await this.ask<{ id: string }>(
      `SELECT coalesce(name, serial::text) AS id FROM tokens WHERE serial >= $1 AND ${VISIBLE}`,
      [firstIdAt(since)],
    )
    return rows.map(({ id }) => id)
  }

  /** Describes inconsistencies between the tables; empty when there are none. */
  async flaws(): Promise<string[]> {
    await this.settled()
    const found: string[] = []
    for (const [what, sql] of Object.entries(NONE_OF)) {
      const [row] = await this.ask<{ count: number }>(`SELECT count(*) AS count FROM ${sql}`)
      if (row!.count > 0) found.push(`${row!.count} ${what}`)
    }
    return [...found, ...(await this.#flawsOfAuditLog())]
  }

  /** Whether the audit log is without a gap, and every token in it. */
  async #flawsOfAuditLog(): Promise<string[]> {
    const events = await this.ask<StoredAuditEvent>('SELECT * FROM record ORDER BY number')
    const flaw = firstFlaw(CHAIN_START, events)
    const [tip] = await this.ask<{ number: number }>('SELECT number FROM tenant_heads')
    const made = new Set(events.flatMap(({ entry }) => tokensMadeIn(entry)))
    const internalIds = await this.ask<{ serial: string }>(
      `SELECT serial FROM tokens WHERE ${VISIBLE}`,
    )
    const unrecorded = internalIds.filter((it) => !made.has(it.serial)).length
    return [
      ...(flaw === null ? [] : [`event ${flaw.number} of the audit log ${flaw.what}`]),
      ...(tip?.number === events.length ? [] : ['the audit log ends elsewhere than it says']),
      ...(unrecorded === 0 ? [] : [`${unrecorded} tokens that nobody made, says the audit log`]),
    ]
  }

  async close(): Promise<void> {
    await this.#client.end()
  }
}

/** Internal ids of the tokens that were made, according to an audit event. */
export function tokensMadeIn(entry: Uint8Array): readonly string[] {
  const { entityType, operation, changed, entityIds } = decodeAuditEvent(entry)
  return entityType === 'token' && operation === 'create' && changed ? entityIds : []
}

/** The lowest id that can be made at `ms` (epoch milliseconds). */
export function firstIdAt(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

/** A token is seen once the transaction that made it is committed, or is not remembered any more. */
export const VISIBLE = `(made_in IS NULL OR NOT EXISTS (SELECT 1 FROM transactions AS it
  WHERE it.tenant = tokens.tenant AND it.id = tokens.made_in AND it.state <> 'committed'))`

const NONE_OF = {
  'changes that wait for no open transaction': `pending AS it WHERE NOT EXISTS
    (SELECT 1 FROM transactions WHERE id = it.holder AND (state = 'open' OR unswept))`,
  'parked events of no open transaction': `record_parked AS it WHERE NOT EXISTS
    (SELECT 1 FROM transactions WHERE id::text = it.transaction_id AND (state = 'open' OR unswept))`,
  'search indexes without their token': `token_indexes AS it WHERE NOT EXISTS
    (SELECT 1 FROM tokens WHERE tokens.tenant = it.tenant AND tokens.serial = it.serial)`,
  'tokens without their search indexes': `tokens AS it WHERE indexes IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM token_indexes WHERE tenant = it.tenant AND serial = it.serial)`,
  'sums that are not those of the tokens': `(SELECT type, sum(count) AS count FROM token_counts
      WHERE made_in = '00000000-0000-0000-0000-000000000000' GROUP BY type) AS told
    FULL JOIN (SELECT type, count(*) AS count FROM tokens WHERE ${VISIBLE} GROUP BY type) AS found
    USING (type) WHERE coalesce(told.count, 0) <> coalesce(found.count, 0)`,
} as const

const LOCK_MS_MAX = 20_000
const BIGINT = 20

function parserOf(type: number, format?: 'text' | 'binary'): (value: never) => unknown {
  return type === BIGINT ? Number : pg.types.getTypeParser(type, format)
}
