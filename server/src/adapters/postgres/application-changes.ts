import { packAccess } from '../../ports/access-state.ts'
import type { ChangeOf } from '../../ports/change.ts'
import type { StoredApplication, StoredApplicationKey } from '../../ports/stored.ts'
import { packOptional, packText } from './text.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

const COLUMNS = [
  'name',
  'type',
  'permissions',
  'rules',
  'destinations',
  'expires_at',
  'created_by',
  'created_at',
  'modified_by',
  'modified_at',
]

const ABSENT = { kind: 'absent' } as const

export async function insertApplication(unitOfWork: UnitOfWork, it: StoredApplication): ChangeStep {
  await unitOfWork.session.run(
    `INSERT INTO applications (tenant, id, ${COLUMNS.join(', ')})
     VALUES ($1, $2, ${COLUMNS.map((_column, n) => `$${n + 3}`).join(', ')})`,
    valuesOf(unitOfWork.tenantId, it),
  )
  return null
}

export async function updateApplication(unitOfWork: UnitOfWork, it: StoredApplication): ChangeStep {
  const changed = await unitOfWork.session.run(
    `UPDATE applications SET ${COLUMNS.map((column, n) => `${column} = $${n + 3}`).join(', ')}
     WHERE tenant = $1 AND id = $2`,
    valuesOf(unitOfWork.tenantId, it),
  )
  return changed === 0 ? ABSENT : null
}

/** Deletes the application and its keys. */
export async function deleteApplication({ session, tenantId }: UnitOfWork, id: string): ChangeStep {
  const values = [tenantId, id]
  await session.run('DELETE FROM application_keys WHERE tenant = $1 AND application = $2', values)
  const deleted = await session.run(
    'DELETE FROM applications WHERE tenant = $1 AND id = $2',
    values,
  )
  return deleted === 0 ? ABSENT : null
}

export async function insertApplicationKey(
  { session, tenantId }: UnitOfWork,
  key: StoredApplicationKey,
): ChangeStep {
  const made = await session.run(
    `INSERT INTO application_keys
       (tenant, application, id, hash, prefix, version, created_by, created_at)
     SELECT $1::uuid, $2::uuid, $3::uuid, $4::bytea, $5::text, $6::integer, $7::text, $8::bigint
     WHERE EXISTS (SELECT 1 FROM applications WHERE tenant = $1 AND id = $2)`,
    [
      tenantId,
      key.applicationId,
      key.id,
      key.hash,
      key.prefix,
      key.version,
      packText(key.createdBy),
      key.createdAt,
    ],
  )
  return made === 0 ? ABSENT : null
}

export async function putAccessState(
  { session, tenantId }: UnitOfWork,
  { before, state }: ChangeOf<'put-access-state'>,
): ChangeStep {
  const put = await session.run(
    `UPDATE tenant_heads SET access_revision = $3, access = $4
     WHERE tenant = $1 AND access_revision = $2`,
    [tenantId, before, state.revision, packAccess(state)],
  )
  return put === 0 ? { kind: 'access-changed' } : null
}

function valuesOf(tenantId: string, it: StoredApplication) {
  return [
    tenantId,
    it.id,
    packText(it.name),
    it.type,
    JSON.stringify(it.permissions),
    JSON.stringify(it.rules),
    it.destinations === null ? null : JSON.stringify(it.destinations),
    it.expiresAt,
    packText(it.createdBy),
    it.createdAt,
    packOptional(it.modifiedBy),
    it.modifiedAt,
  ]
}
