/** The tables that a deleted tenant leaves rows in, the same in each database but for the tables of its own. */
import { CLEARED_NAMES, ENTITIES, type EntityTable } from '../../../ports/store/entities.ts'
import { encryptedColumnsOf, keyColumnsOf } from '../../../ports/store/entity-columns.ts'

export interface ClearedTable<Table extends string = string> {
  readonly table: Table
  /** The columns that identify a row within the tenant. */
  readonly key: string
  /** Restricts the rows, if not all are removed. */
  readonly only?: string
  /** Columns with long values: fewer of these rows are removed at a time. */
  readonly long?: readonly string[]
}

const TOKEN_DATA = ['data', 'metadata', 'details'] as const

export const CLEARED_TABLES = [
  ...clearedEntities(),
  { table: 'token_indexes', key: 'hash, serial' },
  { table: 'tokens', key: 'serial', long: TOKEN_DATA },
  { table: 'pending', key: 'serial', long: TOKEN_DATA },
  { table: 'transactions', key: 'id' },
  { table: 'transaction_keys', key: 'transaction_id, application, application_key' },
  { table: 'record_parked', key: 'transaction_id, position' },
  { table: 'record', key: 'number' },
] as const satisfies readonly ClearedTable[]

/** Rows with a parent go before it: SQLite would delete all keys of an application with it, not a few. */
function clearedEntities(): ClearedTable<EntityTable>[] {
  return CLEARED_NAMES.toReversed().map((name) => {
    const { table } = ENTITIES[name]
    const key = keyColumnsOf(name).map((it) => it.name)
    const long = encryptedColumnsOf(name).map((it) => it.name)
    const cleared = { table, key: key.length === 0 ? 'tenant' : key.join(', ') }
    return long.length === 0 ? cleared : { ...cleared, long }
  })
}

/** Returns the condition that no rows of the tenant remain; `tenant` is an SQL expression. */
export function areCleared(tables: readonly ClearedTable[], tenant: string): string {
  const empty = tables.map(({ table, only = 'true' }) => {
    return `NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table}.tenant = ${tenant} AND ${only})`
  })
  return `(${empty.join(' AND ')})`
}
