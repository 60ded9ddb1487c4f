import { authorize } from '../../access/authorize.ts'
import { commit } from '../../request/commit.ts'
import type { RequestContext } from '../../request/context.ts'
import { ServiceError } from '../../base/service-error.ts'
import { noContent, type Answer } from '../../request/response.ts'
import type { World } from '../../ports/world.ts'
import { getProxy } from './get-proxy.ts'

/** Deletes a proxy and revokes its key at once. Throws `permission_missing`, `proxy_not_found`, and what commit() throws. */
export async function deleteProxy(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<Answer> {
  authorize(context, 'proxy:delete')
  await getProxy(world, context, id)
  const conflict = await commit(world, context, [{ kind: 'delete', entity: 'proxy', id }])
  if (conflict !== null) throw new ServiceError('proxy_not_found')
  return noContent()
}
