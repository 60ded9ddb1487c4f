import type { RequestContext } from '../../request/context.ts'
import type { Json } from '../../base/json.ts'
import { ServiceError } from '../../base/service-error.ts'
import { ok, type Answer } from '../../request/response.ts'
import type { World } from '../../ports/world.ts'
import { authorize } from '../authorize.ts'
import { commit } from '../../request/commit.ts'
import { getApplication } from './get-application.ts'
import { parseUpdateApplication, renderApplication } from './wire.ts'

/**
 * Replaces the name, permissions and rules of an application; absent members are cleared, except destinations.
 *
 * Throws `permission_missing`, `application_not_found`, `body_invalid`, and what commit() throws.
 */
export async function updateApplication(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  { id, body }: { readonly id: string; readonly body: Json | undefined },
): Promise<Answer> {
  authorize(context, 'application:update')
  const current = await getApplication(world, context, id)
  const application = {
    ...current,
    ...parseUpdateApplication(body, current),
    modifiedBy: context.applicationId,
    modifiedAt: world.clock.now(),
  }
  const answer = ok(renderApplication(context.tenantId, application))
  const conflict = await commit(
    world,
    context,
    [{ kind: 'update', entity: 'application', row: application }],
    answer,
  )
  if (conflict !== null) throw new ServiceError('application_not_found')
  return answer
}
