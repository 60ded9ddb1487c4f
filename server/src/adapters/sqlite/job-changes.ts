import type { JobChange } from '../../ports/jobs.ts'
import type { BatchPacker } from './batch.ts'
import { STATEMENT } from './statements.ts'

/** Packs one change of a job or of callback secrets. */
export function packJobChange(packer: BatchPacker, tenantId: string, change: JobChange): void {
  switch (change.kind) {
    case 'insert-job':
    case 'update-job': {
      const { job: it, kind } = change
      const { insertJob, updateJob } = STATEMENT
      packer.step(kind === 'insert-job' ? insertJob : updateJob, [
        tenantId,
        it.id,
        it.stage,
        Number(it.claimed),
        it.deliveryQueue,
        it.dueAt,
        it.attempts,
        it.terms,
        it.result,
        it.revision,
        it.reactorId,
        it.createdAt,
      ])
      return
    }

    case 'claim-job': {
      const { id, revision, dueAt } = change
      packer.step(STATEMENT.claimJob, [tenantId, id, revision, dueAt])
      return
    }

    case 'delete-job':
      packer.step(STATEMENT.deleteJob, [tenantId, change.id, change.revision])
      return

    case 'put-callback-secrets': {
      const { secrets, revision } = change.secrets
      packer.step(STATEMENT.putCallbackSecrets, [tenantId, secrets, revision])
      return
    }

    default:
      throw new TypeError('Cannot commit: a change of a job is of no known kind', {
        cause: change satisfies never,
      })
  }
}
