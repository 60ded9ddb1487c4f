import type { StoredApplication, StoredApplicationKey } from '../../world/stored.ts'
import { packOptional, packText } from './text.ts'
import type { Step, Unit } from './unit.ts'

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

export async function insertApplication(unit: Unit, it: StoredApplication): Step {
  await unit.session.run(
    `INSERT INTO applications (tenant, id, ${COLUMNS.join(', ')})
     VALUES ($1, $2, ${COLUMNS.map((_column, n) => `$${n + 3}`).join(', ')})`,
    valuesOf(unit.tenantId, it),
  )
  return null
}

export async function updateApplication(unit: Unit, it: StoredApplication): Step {
  const changed = await unit.session.run(
    `UPDATE applications SET ${COLUMNS.map((column, n) => `${column} = $${n + 3}`).join(', ')}
     WHERE tenant = $1 AND id = $2`,
    valuesOf(unit.tenantId, it),
  )
  return changed === 0 ? ABSENT : null
}

/** Its keys go along. */
export async function deleteApplication({ session, tenantId }: Unit, id: string): Step {
  const values = [tenantId, id]
  await session.run('DELETE FROM application_keys WHERE tenant = $1 AND application = $2', values)
  const deleted = await session.run(
    'DELETE FROM applications WHERE tenant = $1 AND id = $2',
    values,
  )
  return deleted === 0 ? ABSENT : null
}

export async function insertApplicationKey(
  { session, tenantId }: Unit,
  key: StoredApplicationKey,
): Step {
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
