/** Statements that remove the rows of a deleted tenant, in chunks. */
import { ENTITIES, CLEARED_NAMES, type EntityTable } from '../../../ports/store/entities.ts'
import { encryptedColumnsOf, keyColumnsOf } from '../../../ports/store/entity-columns.ts'
import { SWEEP_ROWS_MAX, bytesOf, few } from './long-rows.ts'
import type { Statement } from './statements.ts'

/** Tables that a deleted tenant leaves rows in, with the key of their rows. */
export const CLEARED = [
  ...clearedEntities(),
  // Removing jobs writes to it.
  { table: 'job_sizes', key: 'stage' },
  { table: 'token_indexes', key: 'hash, serial' },
  { table: 'tokens', key: 'serial', long: ['data', 'metadata', 'details'] },
  { table: 'token_counts', key: 'unit, type, day' },
  { table: 'pending', key: 'serial', long: ['data', 'metadata', 'details'] },
  // Other staging batches are closed by the commits that opened them, or at the next start.
  { table: 'units', key: 'id', only: 'whole = 1' },
  { table: 'token_blocks', key: 'first, unit' },
  { table: 'transactions', key: 'id' },
  { table: 'transaction_keys', key: 'transaction_id, application, application_key' },
  { table: 'record_parked', key: 'transaction_id, position' },
  { table: 'record', key: 'number' },
  { table: 'record_heads', key: 'tenant' },
] as const satisfies readonly Cleared[]

interface Cleared<Table = string> {
  readonly table: Table
  readonly key: string
  /** Restricts the rows, if not all are removed. */
  readonly only?: string
  /** Columns with long values: fewer of these rows are removed at a time. */
  readonly long?: readonly string[]
}

/** Rows that belong to others go first: few of them are deleted at a time. */
function clearedEntities(): Cleared<EntityTable>[] {
  return CLEARED_NAMES.toReversed().map((name) => {
    const { table } = ENTITIES[name]
    const key = keyColumnsOf(name).map((it) => it.name)
    const long = encryptedColumnsOf(name).map((it) => it.name)
    const cleared = { table, key: key.length === 0 ? 'tenant' : key.join(', ') }
    return long.length === 0 ? cleared : { ...cleared, long }
  })
}

/** Returns the condition that no rows of the tenant remain; `tenant` is an SQL expression. */
export function isCleared(tenant: string): string {
  const empty = CLEARED.map(({ table, only = 'true' }: Cleared) => {
    return `NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table}.tenant = ${tenant} AND ${only})`
  })
  return `(${empty.join(' AND ')})`
}

export type ClearingName = `clear:${(typeof CLEARED)[number]['table']}`

/** Returns a statement per table. Each removes rows only of deleted tenants, whatever else is in the commit. */
export function clearing(): Record<ClearingName, Statement> {
  const statements = CLEARED.map((it: Cleared): [string, Statement] => [
    `clear:${it.table}`,
    {
      sql: `DELETE FROM ${it.table} WHERE tenant = ?1 AND (${it.key}) IN (${some(it)})`,
      params: ['id'],
      refuses: 'never',
    },
  ])
  return Object.fromEntries(statements) as Record<ClearingName, Statement>
}

/** Selects the keys of a few rows. */
function some({ table, key, only = 'true', long }: Cleared): string {
  const rows = `FROM ${table} WHERE tenant = ?1 AND ${only}
    AND EXISTS (SELECT 1 FROM deleted_tenants WHERE id = ?1)`
  if (long === undefined) return `SELECT ${key} ${rows} LIMIT ${SWEEP_ROWS_MAX}`
  const sized = `SELECT ${key}, ${bytesOf(long)} AS bytes ${rows}`
  return `SELECT ${key} FROM (${few(sized, key)})`
}
