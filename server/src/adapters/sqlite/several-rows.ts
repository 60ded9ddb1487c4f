import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SqliteValue } from './batch.ts'

/** Rows that go to the database in one call; beyond this the gain is gone. */
export const ROWS_AT_ONCE = 8

/**
 * A statement that inserts a row, for several at once.
 *
 * To hand a value over costs about as much as to write it. Rows that come together mostly differ in their `own`
 * columns alone, and then what they have in common is handed over once.
 */
export class SeveralRows {
  readonly #width: number
  /** Numbers of columns. */
  readonly #own: readonly number[]
  readonly #common: readonly number[]
  readonly #any: StatementSync
  readonly #alike: StatementSync
  /** In the order of the parameters of `#alike`. */
  readonly #values: SqliteValue[] = []

  constructor(
    db: DatabaseSync,
    { sql, params }: { readonly sql: string; readonly params: readonly string[] },
    own: readonly number[],
  ) {
    const columns = [...params.keys()]
    this.#width = columns.length
    this.#own = own
    this.#common = columns.filter((it) => !own.includes(it))
    const one = `VALUES ${rowOf(columns.length)}`
    this.#any = db.prepare(sql.replace(one, rowsOf(columns.length)))
    // Not by numbered parameters: Node looks for the name of each in all of them.
    const places = columns.map((it) => (own.includes(it) ? `column${own.indexOf(it) + 1}` : '?'))
    const select = `SELECT ${places.join(', ')} FROM (${rowsOf(own.length)}) WHERE true`
    this.#alike = db.prepare(sql.replace(one, select))
  }

  /** Inserts ROWS_AT_ONCE rows, whose values lie one row after the other; returns how many it inserted. */
  run(values: readonly SqliteValue[]): number | bigint {
    if (!this.#areAlike(values)) return this.#any.run(...values).changes
    let to = 0
    for (const column of this.#common) this.#values[to++] = values[column]!
    for (let row = 0; row < values.length; row += this.#width) {
      for (const column of this.#own) this.#values[to++] = values[row + column]!
    }
    return this.#alike.run(...this.#values).changes
  }

  #areAlike(values: readonly SqliteValue[]): boolean {
    for (const column of this.#common) {
      for (let at = column + this.#width; at < values.length; at += this.#width) {
        if (values[at] !== values[column]) return false
      }
    }
    return true
  }
}

function rowsOf(width: number): string {
  return `VALUES ${Array(ROWS_AT_ONCE).fill(rowOf(width)).join(', ')}`
}

export function rowOf(width: number): string {
  return `(${Array(width).fill('?').join(', ')})`
}
