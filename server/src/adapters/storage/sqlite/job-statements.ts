/** Statements that write jobs. */
import type { Statement } from './statements.ts'

export const JOB_TABLE = {
  claimJob: {
    sql: `UPDATE jobs SET claimed = 1, due_at = ?4, attempts = attempts + 1, revision = ?3 + 1
      WHERE tenant = ?1 AND id = ?2 AND revision = ?3`,
    params: ['id', 'id', 'integer', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'job-changed',
  },
} as const satisfies Record<string, Statement>
