import type { RequestContext } from '../../request/context.ts'
import { ServiceError } from '../../base/service-error.ts'
import { noContent, type Answer } from '../../request/response.ts'
import type { World } from '../../ports/world.ts'
import { authorize } from '../authorize.ts'
import { commit } from '../../request/commit.ts'
import { getApplication } from './get-application.ts'

/**
 * Deletes an application; its keys stop working. Its tokens stay, since they belong to the tenant.
 *
 * Throws `permission_missing`, `application_not_found`, and what commit() throws.
 */
export async function deleteApplication(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<Answer> {
  authorize(context, 'application:delete')
  await getApplication(world, context, id)
  const conflict = await commit(world, context, [{ kind: 'delete', entity: 'application', id }])
  if (conflict !== null) throw new ServiceError('application_not_found')
  return noContent()
}
