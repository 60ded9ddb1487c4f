/**
 * Writes jobs. Each change names the revision it was based on. A claim is a lease: a second claimant, on any server,
 * finds another revision. Only time ends a claim, because its server may still be alive.
 */
import type { JobChange, StoredCallbackSecrets, StoredJob } from '../../ports/jobs.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

const CHANGED = { kind: 'job-changed' } as const

export async function changeJob({ session, tenantId }: UnitOfWork, change: JobChange): ChangeStep {
  switch (change.kind) {
    case 'insert-job': {
      const { job } = change
      await session.run(
        `INSERT INTO jobs (tenant, id, stage, claimed, lane, due_at, attempts, terms, result, revision,
           reactor, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
        [tenantId, ...changingOf(job), job.reactorId, job.createdAt],
      )
      return null
    }

    case 'claim-job': {
      const claimed = await session.run(
        `UPDATE jobs SET claimed = true, due_at = $4, attempts = attempts + 1, revision = revision + 1
         WHERE tenant = $1 AND id = $2 AND revision = $3`,
        [tenantId, change.id, change.revision, change.dueAt],
      )
      return claimed === 0 ? CHANGED : null
    }

    case 'update-job': {
      const updated = await session.run(
        `UPDATE jobs SET stage = $3, claimed = $4, lane = $5, due_at = $6, attempts = $7, terms = $8,
           result = $9, revision = $10
         WHERE tenant = $1 AND id = $2 AND revision = $10 - 1`,
        [tenantId, ...changingOf(change.job)],
      )
      return updated === 0 ? CHANGED : null
    }

    case 'delete-job': {
      const deleted = await session.run(
        'DELETE FROM jobs WHERE tenant = $1 AND id = $2 AND revision = $3',
        [tenantId, change.id, change.revision],
      )
      return deleted === 0 ? CHANGED : null
    }

    case 'put-callback-secrets':
      return await putSecrets({ session, tenantId }, change.secrets)

    default:
      throw new TypeError('Cannot commit: a change of a job is of no known kind', {
        cause: change satisfies never,
      })
  }
}

function changingOf({ id, stage, claimed, deliveryQueue: lane, dueAt, ...it }: StoredJob) {
  return [id, stage, claimed, lane, dueAt, it.attempts, it.terms, it.result, it.revision]
}

async function putSecrets(
  { session, tenantId }: Pick<UnitOfWork, 'session' | 'tenantId'>,
  { secrets, revision }: StoredCallbackSecrets,
): ChangeStep {
  const put = await session.run(
    revision === 0
      ? `INSERT INTO callback_secrets (tenant, secrets, revision) VALUES ($1, $2, $3)
         ON CONFLICT DO NOTHING`
      : `UPDATE callback_secrets SET secrets = $2, revision = $3
         WHERE tenant = $1 AND revision = $3 - 1`,
    [tenantId, secrets, revision],
  )
  return put === 0 ? { kind: 'callback-secrets-changed' } : null
}
