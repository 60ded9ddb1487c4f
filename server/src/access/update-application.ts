import type { Caller } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import { ok, type Answer } from '../http/endpoint.ts'
import type { World } from '../world/world.ts'
import { authorize } from './authorize.ts'
import { commit } from './commit.ts'
import { getApplication } from './get-application.ts'
import { parseUpdateApplication, renderApplication } from './wire.ts'

/**
 * Replaces the name, permissions and rules of an application; what is absent is gone, but for destinations.
 *
 * Throws `permission_missing`, `application_not_found`, `body_invalid`, and what commit() throws.
 */
export async function updateApplication(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  caller: Caller,
  { id, body }: { readonly id: string; readonly body: Json | undefined },
): Promise<Answer> {
  authorize(caller, 'application:update')
  const current = await getApplication(world, caller, id)
  const application = {
    ...current,
    ...parseUpdateApplication(body, current),
    modifiedBy: caller.applicationId,
    modifiedAt: world.clock.now(),
  }
  const answer = ok(renderApplication(caller.tenantId, application))
  const conflict = await commit(
    world,
    caller,
    [{ kind: 'update-application', application }],
    answer,
  )
  if (conflict !== null) throw new ServiceError('application_not_found')
  return answer
}
