/** Statements that remove the rows of a deleted tenant, in chunks. */
import { SWEEP_ROWS_MAX, bytesOf, few } from './long-rows.ts'
import type { Statement } from './statements.ts'

/** Tables that a deleted tenant leaves rows in, with the key of their rows. */
export const CLEARED = [
  { table: 'application_keys', key: 'application, id' },
  { table: 'applications', key: 'id' },
  { table: 'sessions', key: 'id' },
  { table: 'proxies', key: 'id', long: ['terms'] },
  { table: 'reactors', key: 'id', long: ['terms'] },
  { table: 'jobs', key: 'id', long: ['terms', 'result'] },
  // Removing jobs writes to it.
  { table: 'job_sizes', key: 'stage' },
  { table: 'callback_secrets', key: 'tenant' },
  { table: 'token_indexes', key: 'hash, serial' },
  { table: 'tokens', key: 'serial', long: ['data', 'metadata', 'details'] },
  { table: 'answers', key: 'id', long: ['body'] },
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

interface Cleared {
  readonly table: string
  readonly key: string
  /** Restricts the rows, if not all are removed. */
  readonly only?: string
  /** Columns with long values: fewer of these rows are removed at a time. */
  readonly long?: readonly string[]
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
