import { authorize } from '../access/authorize.ts'
import { commit } from '../access/commit.ts'
import type { RequestContext } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import { noContent, type Answer } from '../http/endpoint.ts'
import type { World } from '../ports/world.ts'

/**
 * Deletes the caller's tenant. When this returns no key of it opens anything, and the keys that its data
 * were sealed with are gone, so that nobody can read them. Their rows follow: clear-deleted-tenants.ts.
 *
 * Throws `permission_missing`, `key_unknown` when somebody else was quicker, and what commit() throws.
 */
export async function deleteTenant(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
): Promise<Answer> {
  authorize(context, 'tenant:delete')
  try {
    const change = { kind: 'delete-tenant', at: world.clock.now() } as const
    const conflict = await commit(world, context, [change])
    if (conflict !== null) throw new ServiceError('key_unknown')
  } finally {
    // Also when nobody knows whether it was done: if not, they are looked up again.
    world.keyring.forget(context.tenantId)
  }
  return noContent()
}
