import type { ChangeOf } from '../../../ports/change.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

/**
 * Claims the revision that was read. A claim is a lease: a second claimant, on any server, finds another revision. Only time ends a
 * claim, because its server may still be alive.
 */
export async function claimJob(
  { session, tenantId }: UnitOfWork,
  { id, revision, dueAt }: ChangeOf<'claim-job'>,
): ChangeStep {
  const claimed = await session.run(
    `UPDATE jobs SET claimed = true, due_at = $4, attempts = attempts + 1, revision = revision + 1
     WHERE tenant = $1 AND id = $2 AND revision = $3`,
    [tenantId, id, revision, dueAt],
  )
  return claimed === 0 ? { kind: 'job-changed' } : null
}
