/** Statements that write sessions. */
import type { Statement } from './statements.ts'

export const SESSION_TABLE = {
  insertSession: {
    sql: `INSERT INTO sessions
      (tenant, id, application, application_key, hash, nonce_hash, created_at, expires_at, proof)
      SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
      WHERE EXISTS (
        SELECT 1 FROM application_keys WHERE tenant = ?1 AND application = ?3 AND id = ?4
      )`,
    params: ['id', 'id', 'id', 'id', 'bytes', 'bytes', 'integer', 'integer', 'bytes'],
    refuses: 'if-nothing-changed',
    conflict: 'absent',
  },

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

  /** Removes two for every new one, as with answers. */
  forgetSessions: {
    sql: `DELETE FROM sessions WHERE (tenant, id) IN
      (SELECT tenant, id FROM sessions WHERE expires_at <= ? ORDER BY expires_at LIMIT 2)`,
    params: ['integer'],
    refuses: 'never',
  },
} as const satisfies Record<string, Statement>
