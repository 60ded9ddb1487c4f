import { authorize } from '../../access/authorize.ts'
import { commit } from '../../request/commit.ts'
import type { RequestContext } from '../../request/context.ts'
import { isUuid } from '../../base/id.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../request/response.ts'
import type { World } from '../../ports/world.ts'
import { revived } from '../jobs/stages.ts'

/**
 * Schedules a dead letter for delivery, with a full set of attempts and its original id. It leaves the list unless it
 * becomes a dead letter again.
 *
 * Throws `permission_missing`, `callback_not_found`, and what commit() throws.
 */
export async function replayCallback(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<Answer> {
  authorize(context, 'reactor:update')
  const found = isUuid(id) ? await world.store.jobs.find(context.tenantId, id) : null
  if (found?.stage !== 'dead') throw new ServiceError('callback_not_found')
  const job = revived(found, world.clock.now())
  const conflict = await commit(world, context, [{ kind: 'update', entity: 'job', row: job }])
  if (conflict !== null) throw new ServiceError('callback_not_found')
  return { status: 202 }
}
