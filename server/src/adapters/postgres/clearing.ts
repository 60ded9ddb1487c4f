/** Removes the rows of a deleted tenant, a little at a time. */
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

/** What a deleted tenant leaves behind: tables by what names a row of them. */
export const CLEARED = {
  application_keys: 'application, id',
  applications: 'id',
  sessions: 'id',
  proxies: 'id',
  reactors: 'id',
  jobs: 'id',
  callback_secrets: 'tenant',
  token_indexes: 'hash, serial',
  tokens: 'serial',
  answers: 'id',
  token_counts: 'made_in, type, day',
  pending: 'serial',
  transactions: 'id',
  record_parked: 'transaction_id, position',
  record: 'number',
} as const

/** Rows of each table that one step removes. */
const ROWS_MAX = 64

/** Returns the condition that nothing is left of the tenant `tenant`, an SQL expression. */
export function isCleared(tenant: string): string {
  const empty = Object.keys(CLEARED).map(
    (table) => `NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table}.tenant = ${tenant})`,
  )
  return `(${empty.join(' AND ')})`
}

/** Only of a tenant that is deleted. The chain tip goes last: it is what writers take turns by. */
export async function clearTenant(
  { session, tenantId }: UnitOfWork,
  { deletedBefore }: { readonly deletedBefore: number },
): ChangeStep {
  const found = await session.ask('SELECT 1 FROM deleted_tenants WHERE id = $1', [tenantId])
  if (found.length === 0) return null
  for (const [table, key] of Object.entries(CLEARED)) {
    await session.run(
      `DELETE FROM ${table} WHERE tenant = $1 AND (${key}) IN
         (SELECT ${key} FROM ${table} WHERE tenant = $1 LIMIT ${ROWS_MAX})`,
      [tenantId],
    )
  }
  const over = await session.run(
    `DELETE FROM deleted_tenants WHERE id = $1 AND deleted_at < $2 AND ${isCleared('$1')}`,
    [tenantId, deletedBefore],
  )
  if (over > 0) await session.run('DELETE FROM tenant_heads WHERE tenant = $1', [tenantId])
  return null
}
