import type { ChangeOf } from '../../../ports/change.ts'
import type { RootKeyCheck } from '../../../ports/stored.ts'
import { changeEntity } from './entity-changes.ts'
import type { Session } from './session.ts'
import { packOptional, packText } from './text.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

const ABSENT = { kind: 'absent' } as const
const TAKEN = { kind: 'tenant-taken' } as const

export async function install({ session }: UnitOfWork, { id, check }: RootKeyCheck): ChangeStep {
  const made = await session.run(
    `INSERT INTO installation (one, root_key_id, root_key_check) VALUES (1, $1, $2)
     ON CONFLICT DO NOTHING`,
    [id, check],
  )
  return made === 0 ? { kind: 'installed' } : null
}

export async function insertTenant(
  unitOfWork: UnitOfWork,
  { tenant: it, keys }: ChangeOf<'insert-tenant'>,
): ChangeStep {
  const { session } = unitOfWork
  await takeRootKey(session)
  const made = await session.run(
    `INSERT INTO tenants
       (id, name, plan, settings, created_by, created_at, modified_by, modified_at)
     SELECT $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::text, $8::bigint
     WHERE NOT EXISTS (SELECT 1 FROM tenants WHERE name = $2::text) ON CONFLICT DO NOTHING`,
    [
      it.id,
      packText(it.name),
      it.plan,
      JSON.stringify(it.settings),
      packText(it.createdBy),
      it.createdAt,
      packOptional(it.modifiedBy),
      it.modifiedAt,
    ],
  )
  if (made === 0) return TAKEN
  for (const row of keys) {
    const key = { kind: 'insert', entity: 'tenant_key', row } as const
    const conflict = await changeEntity({ ...unitOfWork, tenantId: it.id }, key)
    if (conflict !== null) return conflict
  }
  return null
}

/**
 * Locks the row of the root key, shared. Adding keys and rewrapping all of them exclude each other, so no key is
 * missed. Resolves with the id of the root key, or null when there is none.
 */
export async function holdRootKey(session: Session): Promise<string | null> {
  const [row] = await session.ask('SELECT root_key_id FROM installation FOR SHARE')
  return row === undefined ? null : String(row.root_key_id)
}

/**
 * Locks the row of the root key, as its only holder: no other tenant is added meanwhile, so none takes the same name. Resolves
 * as holdRootKey() does.
 */
export async function takeRootKey(session: Session): Promise<string | null> {
  const [row] = await session.ask('SELECT root_key_id FROM installation FOR UPDATE')
  return row === undefined ? null : String(row.root_key_id)
}

export async function putNotice(
  { session }: UnitOfWork,
  { id, notice }: ChangeOf<'put-notice'>,
): ChangeStep {
  if (notice === null) await session.run('DELETE FROM notices WHERE id = $1', [id])
  else {
    await session.run(
      `INSERT INTO notices (id, notice, created_at) VALUES ($1, $2, $3)
       ON CONFLICT (id) DO UPDATE SET notice = excluded.notice, created_at = excluded.created_at`,
      [id, notice.text, notice.at],
    )
  }
  return null
}

export async function deleteTenant({ session, tenantId }: UnitOfWork, at: number): ChangeStep {
  await session.run('DELETE FROM tenant_keys WHERE tenant = $1', [tenantId])
  const deleted = await session.run('DELETE FROM tenants WHERE id = $1', [tenantId])
  if (deleted === 0) return ABSENT
  await session.run('INSERT INTO deleted_tenants (id, deleted_at) VALUES ($1, $2)', [tenantId, at])
  return null
}
