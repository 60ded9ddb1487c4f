/** Statements that write sessions. */
import type { Statement } from './statements.ts'

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
    refuses: 'never',
  },
} as const satisfies Record<string, Statement>
