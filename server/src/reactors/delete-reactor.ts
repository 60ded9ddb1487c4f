import { authorize } from '../access/authorize.ts'
import { commit } from '../request/commit.ts'
import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import { noContent, type Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'
import { getReactor } from './get-reactor.ts'

/** Deletes a reactor; runs in progress finish. Throws `permission_missing`, `reactor_not_found`, and what commit() throws. */
export async function deleteReactor(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<Answer> {
  authorize(context, 'reactor:delete')
  await getReactor(world, context, id)
  const conflict = await commit(world, context, [{ kind: 'delete', entity: 'reactor', id }])
  if (conflict !== null) throw new ServiceError('reactor_not_found')
  return noContent()
}
