/** Remembers answers for replay. */
import type { ChangeOf } from '../../../ports/change.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

export const ANSWER_TABLE = {
  /** Replaces an answer that had expired at the time of the last parameter. */
  rememberAnswer: {
    sql: `INSERT INTO answers (tenant, id, status, body, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT (tenant, id) DO UPDATE
      SET status = excluded.status, body = excluded.body, expires_at = excluded.expires_at
      WHERE expires_at <= ?6`,
    params: ['id', 'id', 'integer', 'bytes', 'integer', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'answer-taken',
    plain: true,
  },

  /** Removes two for every new one: they never pile up, and no commit pays for many. */
  forgetAnswers: {
    sql: `DELETE FROM answers WHERE rowid IN
      (SELECT rowid FROM answers WHERE expires_at <= ? ORDER BY expires_at LIMIT 2)`,
    params: ['integer'],
    plain: true,
  },
} as const satisfies Record<string, Statement>

export function packAnswer(
  { packer, tenantId }: SqliteUnitOfWork,
  { answer, now }: ChangeOf<'remember-answer'>,
): void {
  const { id, status, body, expiresAt } = answer
  packer.step('rememberAnswer', [tenantId, id, status, body, expiresAt, now])
  packer.step('forgetAnswers', [now])
}
