import { authorize } from '../../access/authorize.ts'
import type { RequestContext } from '../../base/access.ts'
import { isUuid } from '../../base/id.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../http/endpoint.ts'
import type { World } from '../../ports/world.ts'
import { openJobState, openResult } from './job-state.ts'

/**
 * Answers as the invocation would have been answered, had its caller waited: for whoever invoked, and as long as the
 * result is kept.
 *
 * Throws `permission_missing`, and `reactor_result_not_found`: the same whether there is none yet or no more, it is
 * somebody else's, or it never was.
 */
export async function getResult(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  { reactorId, requestId }: { readonly reactorId: string; readonly requestId: string },
): Promise<Answer> {
  const { tenantId } = context
  const thing = isUuid(reactorId) ? { id: reactorId, internalId: reactorId, containers: [] } : []
  authorize(context, 'reactor:invoke', thing)
  const job = isUuid(requestId) ? await world.store.jobs.find(tenantId, requestId) : null
  if (job?.stage !== 'keep' || job.reactorId !== reactorId || job.dueAt <= world.clock.now()) {
    throw new ServiceError('reactor_result_not_found')
  }
  const keys = await world.keyring.open(tenantId)
  const { applicationId, keyId, session } = openJobState(keys, job).asker
  const mine =
    applicationId === context.applicationId && (session === null) === (context.type !== 'session')
  // Of one application there may be many sessions, each somebody else's.
  if (!mine || (session !== null && keyId !== context.keyId)) {
    throw new ServiceError('reactor_result_not_found')
  }
  return openResult(keys, job)
}
