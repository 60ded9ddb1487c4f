import { authorize, requireGrants } from '../../access/authorize.ts'
import type { RequestContext } from '../../request/context.ts'
import { isUuid } from '../../base/id.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../request/response.ts'
import type { World } from '../../ports/world.ts'
import { openJobState, openResult } from './job-state.ts'

/** In the audit log, fetching a result is not an invocation, although it takes the same permission. */
export const READ_OF_RESULT = { entityType: 'reactor_result', operation: 'read' } as const

/**
 * Returns the answer the invocation would have had synchronously, to its initiator and while the result is kept. The audit
 * log has who read a result, and who was denied to; as with tokens, it has nothing about one that is not there.
 *
 * Throws `permission_missing`, also if the initiator's present rights allow less than the result shows, and the same
 * `reactor_result_not_found` whether the result is pending, expired, another
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
  // Recorded once it is known whether there is anything to read, and then as a read of the result.
  const { internalId: _reactor, ...decision } = context.decisions.pop()!
  const job = isUuid(requestId) ? await world.store.jobs.find(tenantId, requestId) : null
  if (job?.stage !== 'keep' || job.reactorId !== reactorId || job.dueAt <= world.clock.now()) {
    throw new ServiceError('reactor_result_not_found')
  }
  const keys = await world.keyring.open(tenantId)
  const { initiator, grants = [] } = openJobState(keys, job)
  const { applicationId, keyId, session } = initiator
  const mine =
    applicationId === context.applicationId && (session === null) === (context.type !== 'session')
  // One application may have many sessions, each for another visitor.
  if (!mine || (session !== null && keyId !== context.keyId)) {
    throw new ServiceError('reactor_result_not_found')
  }
  requireGrants(context, grants, { about: READ_OF_RESULT, internalId: job.id })
  context.decisions.push({ ...decision, about: READ_OF_RESULT, internalId: job.id })
  return openResult(keys, job)
}
