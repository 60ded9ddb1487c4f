/** The statements that remove the rows of a deleted tenant, a little at a time. */
import { SWEEP_ROWS_MAX, bytesOf, few } from './long-rows.ts'
import type { Statement } from './statements.ts'

/** What a deleted tenant leaves behind: tables by what names a row of them. */
export const CLEARED = [
  { table: 'application_keys', key: 'application, id' },
  { table: 'applications', key: 'id' },
  { table: 'sessions', key: 'id' },
  { table: 'proxies', key: 'id', long: ['terms'] },
  { table: 'reactors', key: 'id', long: ['terms'] },
  { table: 'jobs', key: 'id', long: ['terms', 'result'] },
  { table: 'callback_secrets', key: 'tenant' },
  { table: 'token_indexes', key: 'hash, serial' },
  { table: 'tokens', key: 'serial', long: ['data', 'metadata', 'details'] },
  { table: 'answers', key: 'id', long: ['body'] },
  { table: 'token_counts', key: 'unit, type, day' },
  { table: 'pending', key: 'serial', long: ['data', 'metadata', 'details'] },
  // Others are closed by the commits that opened them, or at the next start.
  { table: 'units', key: 'id', only: 'whole = 1' },
  { table: 'token_blocks', key: 'first, unit' },
  { table: 'transactions', key: 'id' },
  { table: 'record_parked', key: 'transaction_id, position' },
  { table: 'record', key: 'number' },
  { table: 'record_heads', key: 'tenant' },
] as const satisfies readonly Cleared[]

interface Cleared {
  readonly table: string
  readonly key: string
  /** Which rows, where it is not all. */
  readonly only?: string
  /** Columns with much in them: fewer of such rows are removed at a time. */
  readonly long?: readonly string[]
}

/** Returns the condition that nothing is left of the tenant `tenant`, an SQL expression. */
export function isCleared(tenant: string): string {
  const empty = CLEARED.map(({ table, only = 'true' }: Cleared) => {
    return `NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table}.tenant = ${tenant} AND ${only})`
  })
  return `(${empty.join(' AND ')})`
}

export type ClearingName = `clear:${(typeof CLEARED)[number]['table']}`

/** Only of a tenant that is deleted, whatever the rest of the commit says. */
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

/** The keys of a few rows. */
function some({ table, key, only = 'true', long }: Cleared): string {
  const rows = `FROM ${table} WHERE tenant = ?1 AND ${only}
    AND EXISTS (SELECT 1 FROM deleted_tenants WHERE id = ?1)`
  if (long === undefined) return `SELECT ${key} ${rows} LIMIT ${SWEEP_ROWS_MAX}`
  const sized = `SELECT ${key}, ${bytesOf(long)} AS bytes ${rows}`
  return `SELECT ${key} FROM (${few(sized, key)})`
}
