import { authorize } from '../access/authorize.ts'
import { commit } from '../request/commit.ts'
import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import { noContent, type Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'

/**
 * Deletes the caller's tenant. When this returns its API keys no longer work, and its encryption keys are gone, so that its data
 * cannot be read (crypto-shredding). clear-deleted-tenants.ts removes its rows.
 *
 * Throws `permission_missing`, `key_unknown` if another request deleted it first, and what commit() throws.
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
    // Also if the outcome is unknown: if it was not deleted, they are looked up again.
    world.keyring.forget(context.tenantId)
  }
  return noContent()
}
