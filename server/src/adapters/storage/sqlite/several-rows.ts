import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Conflict } from '../../../ports/change.ts'
import type { SqliteValue } from './batch.ts'
import type { Param, Statement } from './statements.ts'

/** Rows inserted by one call; more gain nothing. */
export const ROWS_AT_ONCE = 8

/**
 * Runs a statement that inserts a row for several rows at once.
 *
 * Passing a value to SQLite costs about as much as writing it. Rows inserted together usually
 * differ only in a few columns; then the common values are passed once.
 */
export class SeveralRows {
  readonly #width: number
  /** Column indexes. */
  readonly #varying: readonly number[]
  readonly #common: readonly number[]
  readonly #any: StatementSync
  readonly #alike: StatementSync
  /** In the order of the parameters of `#alike`. */
  readonly #values: SqliteValue[] = []

  constructor(
    db: DatabaseSync,
    { sql, params }: { readonly sql: string; readonly params: readonly string[] },
    varyingColumns: readonly number[],
  ) {
    const columns = [...params.keys()]
    this.#width = columns.length
    this.#varying = varyingColumns
    this.#common = columns.filter((it) => !varyingColumns.includes(it))
    const one = `VALUES ${rowOf(columns.length)}`
    this.#any = db.prepare(sql.replace(one, rowsOf(columns.length)))
    // Not numbered parameters: for each, Node searches all names.
    const places = columns.map((it) =>
      varyingColumns.includes(it) ? `column${varyingColumns.indexOf(it) + 1}` : '?',
    )
    const select = `SELECT ${places.join(', ')} FROM (${rowsOf(varyingColumns.length)}) WHERE true`
    this.#alike = db.prepare(sql.replace(one, select))
  }

  /** Inserts ROWS_AT_ONCE rows, whose values are given row after row; returns how many were inserted. */
  run(values: readonly SqliteValue[]): number | bigint {
    if (!this.#areAlike(values)) return this.#any.run(...values).changes
    let to = 0
    for (const column of this.#common) this.#values[to++] = values[column]!
    for (let row = 0; row < values.length; row += this.#width) {
      for (const column of this.#varying) this.#values[to++] = values[row + column]!
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

function rowOf(width: number): string {
  return `(${Array(width).fill('?').join(', ')})`
}

/** Returns a statement that inserts a row, and meets `conflict` if the row exists. */
export function insert(
  conflict: Conflict['kind'] | null,
  table: string,
  params: Readonly<Record<string, Param>>,
): Statement {
  return {
    sql: `${insertInto(table, params)} ON CONFLICT DO NOTHING`,
    params: Object.values(params),
    refuses: 'if-nothing-changed',
    conflict,
  }
}

export function insertInto(table: string, params: Readonly<Record<string, Param>>): string {
  const columns = Object.keys(params)
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${rowOf(columns.length)}`
}
