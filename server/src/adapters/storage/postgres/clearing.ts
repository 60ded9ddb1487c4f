/** Removes the rows of a deleted tenant in small steps. */
import { areCleared, CLEARED_TABLES, type ClearedTable } from '../entity/cleared-tables.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

export const CLEARED: readonly ClearedTable[] = [
  ...CLEARED_TABLES,
  { table: 'token_counts', key: 'made_in, type, day' },
]

/** Rows that one step removes from each table. */
const ROWS_MAX = 64

export function isCleared(tenant: string): string {
  return areCleared(CLEARED, tenant)
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
  for (const { table, key } of CLEARED) {
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
