import { arrayOf, type Scalar } from './binary-array.ts'
import type { PostgresValue } from './session.ts'

/** Columns and their types, in the order of a row's values. */
export type Columns = Readonly<Record<string, string>>

/** Returns a `FROM` item for many rows: one array parameter per column, numbered from `first`. */
export function rowsFrom(columns: Columns, name: string, first = 1): string {
  const arrays = Object.values(columns).map((type, n) => `$${n + first}::${type}[]`)
  return `unnest(${arrays.join(', ')}) AS ${name} (${Object.keys(columns).join(', ')})`
}

/** Returns the parameters of rowsFrom(). */
export function columnsOf(columns: Columns, rows: readonly (readonly Scalar[])[]): PostgresValue[] {
  return Object.values(columns).map((type, n) =>
    arrayOf(
      type,
      rows.map((row) => row[n]!),
    ),
  )
}

/** Returns an INSERT for many rows, which skips rows that already exist. */
export function insertRows(table: string, columns: Columns): string {
  const names = Object.keys(columns).join(', ')
  return `INSERT INTO ${table} (${names}) SELECT ${names} FROM ${rowsFrom(columns, 'rows')}
    ON CONFLICT DO NOTHING`
}
