/** The statements that remove the rows of a deleted tenant, a little at a time. */
import type { Statement } from './statements.ts'

/** What a deleted tenant leaves behind: tables by what names a row of them. */
export const CLEARED = [
  { table: 'application_keys', key: 'application, id' },
  { table: 'applications', key: 'id' },
  { table: 'sessions', key: 'id' },
  { table: 'proxies', key: 'id' },
  { table: 'reactors', key: 'id' },
  { table: 'jobs', key: 'id' },
  { table: 'callback_secrets', key: 'tenant' },
  { table: 'token_indexes', key: 'hash, serial' },
  { table: 'tokens', key: 'serial' },
  { table: 'answers', key: 'id' },
  { table: 'token_counts', key: 'unit, type, day' },
  { table: 'pending', key: 'serial' },
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
}

/** Rows of each table that one step of clearing removes. */
const CLEARED_AT_ONCE = 64

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
  const statements = CLEARED.map(({ table, key, only = 'true' }: Cleared): [string, Statement] => [
    `clear:${table}`,
    {
      sql: `DELETE FROM ${table} WHERE tenant = ?1 AND (${key}) IN
        (SELECT ${key} FROM ${table} WHERE tenant = ?1 AND ${only}
          AND EXISTS (SELECT 1 FROM deleted_tenants WHERE id = ?1)
          LIMIT ${CLEARED_AT_ONCE})`,
      params: ['id'],
      refuses: 'never',
    },
  ])
  return Object.fromEntries(statements) as Record<ClearingName, Statement>
}
