/** Removes the rows of a deleted tenant in small steps. */
import { ENTITIES, CLEARED_NAMES } from '../../../ports/store/entities.ts'
import { keyColumnsOf } from '../../../ports/store/entity-columns.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

/** Tables that still hold rows of a deleted tenant, with the columns that identify a row within the tenant. */
export const CLEARED: Readonly<Record<string, string>> = {
  ...clearedEntities(),
  token_indexes: 'hash, serial',
  tokens: 'serial',
  token_counts: 'made_in, type, day',
  pending: 'serial',
  transactions: 'id',
  transaction_keys: 'transaction_id, application, application_key',
  record_parked: 'transaction_id, position',
  record: 'number',
}

function clearedEntities(): Record<string, string> {
  const tables = CLEARED_NAMES.map((name): [string, string] => {
    const key = keyColumnsOf(name).map((it) => it.name)
    return [ENTITIES[name].table, key.length === 0 ? 'tenant' : key.join(', ')]
  })
  return Object.fromEntries(tables)
}

/** Rows that one step removes from each table. */
const ROWS_MAX = 64

/** Returns an SQL condition that holds when no rows of `tenant`, an SQL expression, are left. */
export function isCleared(tenant: string): string {
  const empty = Object.keys(CLEARED).map(
    (table) => `NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table}.tenant = ${tenant})`,
  )
  return `(${empty.join(' AND ')})`
}

/**
 * Clears one step of a deleted tenant; does nothing for any other. The chain tip goes last, because writers lock it.
 */
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
