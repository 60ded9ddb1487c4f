import { authorize } from '../../access/authorize.ts'
import type { RequestContext } from '../../base/access.ts'
import { isUuid } from '../../base/id.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../http/endpoint.ts'
import type { World } from '../../ports/world.ts'
import { openJobState, openResult } from './job-state.ts'

/**
 * Returns the answer the invocation would have had synchronously, to its initiator and while the result is kept.
 *
 * Throws `permission_missing`, and the same `reactor_result_not_found` whether the result is pending, expired, another
 * caller's or never existed.
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
  const { applicationId, keyId, session } = openJobState(keys, job).initiator
  const mine =
    applicationId === context.applicationId && (session === null) === (context.type !== 'session')
  // One application may have many sessions, each for another visitor.
  if (!mine || (session !== null && keyId !== context.keyId)) {
    throw new ServiceError('reactor_result_not_found')
  }
  return openResult(keys, job)
}
