/** Removes the rows of a deleted tenant, in chunks. */
import type { ChangeOf } from '../../../ports/change.ts'
import { areCleared, CLEARED_TABLES, type ClearedTable } from '../entity/cleared-tables.ts'
import { SWEEP_ROWS_MAX, bytesOf, few } from './long-rows.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

/** Removing jobs and tokens writes to those after them. */
export const CLEARED = [
  ...CLEARED_TABLES,
  { table: 'job_sizes', key: 'stage' },
  { table: 'token_counts', key: 'unit, type, day' },
  // Other staging batches are closed by the commits that opened them, or at the next start.
  { table: 'units', key: 'id', only: 'whole = 1' },
  { table: 'token_blocks', key: 'first, unit' },
  { table: 'record_heads', key: 'tenant' },
] as const satisfies readonly ClearedTable[]

export function isCleared(tenant: string): string {
  return areCleared(CLEARED, tenant)
}

type ClearingName = `clear:${(typeof CLEARED)[number]['table']}`

/** Returns a statement per table. Each removes rows only of deleted tenants, whatever else is in the commit. */
export function clearing(): Record<ClearingName | 'forgetDeletedTenant', Statement> {
  const statements = CLEARED.map((it: ClearedTable): [string, Statement] => [
    `clear:${it.table}`,
    {
      sql: `DELETE FROM ${it.table} WHERE tenant = ?1 AND (${it.key}) IN (${some(it)})`,
      params: ['id'],
    },
  ])
  const forgetDeletedTenant: Statement = {
    sql: `DELETE FROM deleted_tenants WHERE id = ?1 AND deleted_at < ?2 AND ${isCleared('?1')}`,
    params: ['id', 'integer'],
  }
  return {
    ...(Object.fromEntries(statements) as Record<ClearingName, Statement>),
    forgetDeletedTenant,
  }
}

/** Selects the keys of a few rows. */
function some({ table, key, only = 'true', long }: ClearedTable): string {
  const rows = `FROM ${table} WHERE tenant = ?1 AND ${only}
    AND EXISTS (SELECT 1 FROM deleted_tenants WHERE id = ?1)`
  if (long === undefined) return `SELECT ${key} ${rows} LIMIT ${SWEEP_ROWS_MAX}`
  const sized = `SELECT ${key}, ${bytesOf(long)} AS bytes ${rows}`
  return `SELECT ${key} FROM (${few(sized, key)})`
}

export function packClearing(
  { packer, tenantId }: SqliteUnitOfWork,
  { deletedBefore }: ChangeOf<'clear-tenant'>,
): void {
  for (const { table } of CLEARED) packer.step(`clear:${table}`, [tenantId])
  packer.step('forgetDeletedTenant', [tenantId, deletedBefore])
}
