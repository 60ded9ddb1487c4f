import type { ChangeOf } from '../../../ports/change.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

export async function authorizeSession(
  { session, tenantId }: UnitOfWork,
  { id, authorization, expiresAt, proof, now }: ChangeOf<'authorize-session'>,
): ChangeStep {
  const { permissions, rules, applicationId, keyId } = authorization
  const given = await session.run(
    `UPDATE sessions
     SET permissions = $3, rules = $4, authorized_by = $5, authorized_with = $6, expires_at = $7,
       proof = $9
     WHERE tenant = $1 AND id = $2 AND authorized_by IS NULL AND expires_at > $8`,
    [
      tenantId,
      id,
      JSON.stringify(permissions),
      JSON.stringify(rules),
      applicationId,
      keyId,
      expiresAt,
      now,
      proof,
    ],
  )
  return given === 0 ? { kind: 'absent' } : null
}

export async function proveSession(
  { session, tenantId }: UnitOfWork,
  { id, before, proof }: ChangeOf<'prove-session'>,
): ChangeStep {
  await session.run(
    `UPDATE sessions SET proof = $4
     WHERE tenant = $1 AND id = $2 AND proof IS NOT DISTINCT FROM $3::bytea`,
    [tenantId, id, before, proof],
  )
  return null
}
