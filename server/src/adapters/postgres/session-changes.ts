import type { Change } from '../../ports/change.ts'
import type { StoredSession } from '../../ports/stored.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

const ABSENT = { kind: 'absent' } as const

export async function insertSession(
  { session, tenantId }: UnitOfWork,
  it: StoredSession,
): ChangeStep {
  const made = await session.run(
    `INSERT INTO sessions
       (tenant, id, application, application_key, hash, nonce_hash, created_at, expires_at, proof)
     SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::bytea, $6::bytea, $7::bigint, $8::bigint, $9::bytea
     WHERE EXISTS (
       SELECT 1 FROM application_keys WHERE tenant = $1 AND application = $3 AND id = $4)`,
    [
      tenantId,
      it.id,
      it.applicationId,
      it.keyId,
      it.hash,
      it.nonceHash,
      it.createdAt,
      it.expiresAt,
      it.proof,
    ],
  )
  if (made === 0) return ABSENT
  // Deletes a few expired sessions per new one: they never pile up, and no single request pays for many.
  await session.run(
    `DELETE FROM sessions WHERE tenant = $1 AND id IN
       (SELECT id FROM sessions WHERE tenant = $1 AND expires_at <= $2 ORDER BY expires_at LIMIT 10)`,
    [tenantId, it.createdAt],
  )
  return null
}

export async function authorizeSession(
  { session, tenantId }: UnitOfWork,
  { id, authorization, expiresAt, proof, now }: Extract<Change, { kind: 'authorize-session' }>,
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
  return given === 0 ? ABSENT : null
}
