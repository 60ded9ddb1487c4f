import type { ChangeOf } from '../../../ports/change.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

export const JOB_TABLE = {
  claimJob: {
    sql: `UPDATE jobs SET claimed = 1, due_at = ?4, attempts = attempts + 1, revision = ?3 + 1
      WHERE tenant = ?1 AND id = ?2 AND revision = ?3`,
    params: ['id', 'id', 'integer', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'job-changed',
  },
} as const satisfies Record<string, Statement>

/** Claims the revision that was read. */
export function packClaim(
  { packer, tenantId }: SqliteUnitOfWork,
  { id, revision, dueAt }: ChangeOf<'claim-job'>,
): void {
  packer.step('claimJob', [tenantId, id, revision, dueAt])
}
