import type { ChangeOf } from '../../../ports/change.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

export const SESSION_TABLE = {
  authorizeSession: {
    sql: `UPDATE sessions
      SET permissions = ?3, rules = ?4, authorized_by = ?5, authorized_with = ?6, expires_at = ?7,
        proof = ?9
      WHERE tenant = ?1 AND id = ?2 AND authorized_by IS NULL AND expires_at > ?8`,
    params: ['id', 'id', 'text', 'text', 'id', 'id', 'integer', 'integer', 'bytes'],
    refuses: 'if-nothing-changed',
    conflict: 'absent',
  },

  proveSession: {
    sql: 'UPDATE sessions SET proof = ?4 WHERE tenant = ?1 AND id = ?2 AND proof IS ?3',
    params: ['id', 'id', 'bytes', 'bytes'],
  },
} as const satisfies Record<string, Statement>

export function packAuthorization(
  { packer, tenantId }: SqliteUnitOfWork,
  { id, authorization, expiresAt, proof, now }: ChangeOf<'authorize-session'>,
): void {
  const { permissions, rules, applicationId, keyId } = authorization
  packer.step('authorizeSession', [
    tenantId,
    id,
    JSON.stringify(permissions),
    JSON.stringify(rules),
    applicationId,
    keyId,
    expiresAt,
    now,
    proof,
  ])
}

export function packProof(
  { packer, tenantId }: SqliteUnitOfWork,
  { id, before, proof }: ChangeOf<'prove-session'>,
): void {
  packer.step('proveSession', [tenantId, id, before, proof])
}
