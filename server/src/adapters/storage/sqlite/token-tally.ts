import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SqliteValue } from './batch.ts'
import { INSERTS_TOKEN, STATEMENT } from './statements.ts'
import { COUNTED, COUNTED_NAMED } from './token-inserts.ts'

/** Tokens counted together. */
interface Count {
  readonly tenant: SqliteValue
  readonly stagingBatch: number
  readonly type: SqliteValue
  readonly day: number
  count: number
  lastCreatedAt: number
}

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Counts the tokens that a batch inserts, and writes the sums once before its COMMIT.
 *
 * A trigger could do the same per row, for half the cost of the insert. All other changes of tokens
 * are rare enough for triggers.
 */
export class SqliteTokenTally {
  readonly #write: StatementSync
  #counts: Count[] = []
  readonly #own: Count[] = []
  readonly #ownStagingBatch: (tenant: SqliteValue, transaction: SqliteValue) => SqliteValue

  /** `ownStagingBatch` returns the staging batch for single tokens of a transaction. */
  constructor(
    db: DatabaseSync,
    ownStagingBatch: (tenant: SqliteValue, transaction: SqliteValue) => SqliteValue,
  ) {
    this.#ownStagingBatch = ownStagingBatch
    this.#write = db.prepare(
      `INSERT INTO token_counts (tenant, unit, type, day, count, last_created_at)
       VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET count = count + excluded.count,
         last_created_at = max(last_created_at, excluded.last_created_at)`,
    )
  }

  clear(): void {
    this.#counts = []
    this.#own.length = 0
  }

  /** Counts the token of a step that inserts one; its values begin at index `from`. */
  add(statement: number, values: readonly SqliteValue[], from: number): void {
    const count = this.#countOf(statement, values, from)
    if (count !== null) this.#put(count)
  }

  /** Holds the token back until the outcome of its commit is known. */
  hold(statement: number, values: readonly SqliteValue[]): void {
    const count = this.#countOf(statement, values, 0)
    if (count !== null) this.#own.push(count)
  }

  /** Counts the tokens held back, or drops them. */
  settle(made: boolean): void {
    if (made) for (const it of this.#own) this.#put(it)
    this.#own.length = 0
  }

  write(): void {
    for (const { tenant, stagingBatch, type, day, count, lastCreatedAt } of this.#counts) {
      this.#write.run(tenant, stagingBatch, type, day, count, lastCreatedAt)
    }
    this.clear()
  }

  #countOf(statement: number, values: readonly SqliteValue[], from: number): Count | null {
    if (!INSERTS_TOKEN.has(statement)) return null
    const at = statement === STATEMENT.insertToken ? COUNTED : COUNTED_NAMED
    const tenant = values[from + at.tenant]!
    const last = values[from + at.unit]!
    const stagingBatch =
      statement === STATEMENT.insertEnlistedToken ? this.#ownStagingBatch(tenant, last) : last
    const createdAt = values[from + at.createdAt] as number
    return {
      tenant,
      stagingBatch: (stagingBatch as number | null) ?? 0,
      type: values[from + at.type]!,
      day: Math.floor(createdAt / DAY_MS),
      count: 1,
      lastCreatedAt: createdAt,
    }
  }

  #put(next: Count): void {
    // Tokens of one kind usually follow each other, and a batch has few kinds.
    const known =
      this.#counts.at(-1) !== undefined && isSame(this.#counts.at(-1)!, next)
        ? this.#counts.at(-1)!
        : this.#counts.find((it) => isSame(it, next))
    if (known === undefined) {
      this.#counts.push(next)
      return
    }
    known.count++
    known.lastCreatedAt = Math.max(known.lastCreatedAt, next.lastCreatedAt)
  }
}

/** A repeated tenant is the same object; one sent again is counted separately, with the same sum. */
function isSame(a: Count, b: Count): boolean {
  return (
    a.tenant === b.tenant &&
    a.type === b.type &&
    a.day === b.day &&
    a.stagingBatch === b.stagingBatch
  )
}
