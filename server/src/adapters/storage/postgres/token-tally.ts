import type { StoredToken } from '../../../ports/stored.ts'
import { columnsOf, rowsFrom } from './several-rows.ts'
import type { PostgresRow } from './rows.ts'
import { kept, type Session } from './session.ts'
import { packText } from './text.ts'
import { NIL_ID } from '../../../base/id.ts'

const DAY_MS = 24 * 60 * 60 * 1000

const COLUMNS = {
  tenant: 'uuid',
  made_in: 'uuid',
  type: 'text',
  day: 'bigint',
  count: 'bigint',
  last_created_at: 'bigint',
} as const

const NAMES = Object.keys(COLUMNS).join(', ')

const ADD = kept(
  'count-tokens',
  `INSERT INTO token_counts (${NAMES}) SELECT ${NAMES} FROM ${rowsFrom(COLUMNS, 'rows')}
    ON CONFLICT (tenant, made_in, type, day) DO UPDATE
    SET count = token_counts.count + excluded.count,
      last_created_at = greatest(token_counts.last_created_at, excluded.last_created_at)`,
)

interface Sum {
  readonly key: readonly [tenant: string, madeIn: string, type: string, day: number]
  count: number
  lastCreatedAt: number
}

/** The attributes by which a token is counted. */
export interface CountedToken {
  readonly type: string
  readonly createdAt: number
  readonly modifiedAt: number | null
  /** The transaction it was made in, until that commits. */
  readonly madeIn: string | null
}

/** The columns that countedIn() reads. */
export const COUNTED = 'type, created_at, modified_at, made_in'

/** Reads the attributes from a row with COUNTED and `hidden`. */
export function countedIn(row: PostgresRow): CountedToken {
  return {
    type: String(row.type),
    createdAt: Number(row.created_at),
    modifiedAt: row.modified_at === null ? null : Number(row.modified_at),
    madeIn: row.hidden === true ? String(row.made_in) : null,
  }
}

export function countedOf(token: StoredToken, madeIn: string | null): CountedToken {
  const { type, createdAt, modifiedAt } = token
  return { type: packText(type), createdAt, modifiedAt, madeIn }
}

/** Accumulates changes to token counts, to write them in one statement. Decision 0019. */
export class PostgresTokenTally {
  #sums = new Map<string, Sum>()

  /** `count` is 1 for a token added, -1 for one removed. */
  add(tenant: string, { type, createdAt, modifiedAt, madeIn }: CountedToken, count: 1 | -1): void {
    const day = Math.floor(Math.max(createdAt, modifiedAt ?? 0) / DAY_MS)
    const made = madeIn ?? NIL_ID
    const name = `${tenant}${made}${day} ${type}`
    let sum = this.#sums.get(name)
    if (sum === undefined) {
      this.#sums.set(name, (sum = { key: [tenant, made, type, day], count: 0, lastCreatedAt: 0 }))
    }
    sum.count += count
    if (count > 0) sum.lastCreatedAt = Math.max(sum.lastCreatedAt, createdAt)
  }

  /** Merges the counts of `other`. */
  take(other: PostgresTokenTally): void {
    for (const [name, it] of other.#sums) {
      const own = this.#sums.get(name)
      if (own === undefined) this.#sums.set(name, it)
      else {
        own.count += it.count
        own.lastCreatedAt = Math.max(own.lastCreatedAt, it.lastCreatedAt)
      }
    }
    other.#sums = new Map()
  }

  /**
   * Writes the accumulated counts and resets them. Throws synchronously if they cannot be sent, because COMMIT must not
   * follow then.
   */
  write(session: Session): Promise<unknown> {
    if (this.#sums.size === 0) return Promise.resolve()
    const rows = [...this.#sums.values()].map((it) => [...it.key, it.count, it.lastCreatedAt])
    this.#sums = new Map()
    return session.run(ADD, columnsOf(COLUMNS, rows))
  }
}
