import { CHAIN_START } from '../../../ports/audit-log.ts'
import type { PostgresRow } from './rows.ts'
import { kept, type Session } from './session.ts'

/**
 * Locks the tenants' chain tips and returns them. Until the transaction ends, no other transaction writes for these
 * tenants.
 *
 * Locks in sorted order, so that no two servers can deadlock.
 */
export async function lockTenants(
  session: Session,
  tenantIds: readonly string[],
): Promise<readonly PostgresRow[]> {
  const ids = [...new Set(tenantIds)].sort()
  const locked = await lock(session, ids)
  if (locked.length === ids.length) return locked
  // First commit of a tenant.
  await session.run(
    `INSERT INTO tenant_heads (tenant, removed_number, removed_listed, removed_hash, number,
       listed, hash, sealed_number)
     SELECT id, 0, 0, $2::bytea, 0, 0, $2::bytea, 0 FROM unnest($1::uuid[]) AS it (id)
     ON CONFLICT DO NOTHING`,
    [ids.filter((id) => !locked.some((it) => it.tenant === id)), CHAIN_START.hash],
  )
  const all = await lock(session, ids)
  if (all.length < ids.length) throw new Error('The chain tip of a tenant is gone')
  return all
}

const LOCK = kept(
  'lock-tenants',
  `SELECT tenant, number, listed, hash, sealed_from FROM tenant_heads WHERE tenant = ANY($1::uuid[])
    ORDER BY tenant FOR UPDATE`,
)

async function lock(session: Session, ids: readonly string[]): Promise<PostgresRow[]> {
  return await session.ask(LOCK, [ids])
}
