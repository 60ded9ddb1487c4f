import { authorize } from '../access/authorize.ts'
import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import type { StoredTenant } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'

/** Returns the caller's own tenant. Throws `permission_missing`, `key_unknown`. */
export async function readTenant(
  world: Pick<World, 'store'>,
  context: RequestContext,
): Promise<StoredTenant> {
  authorize(context, 'tenant:read')
  return await getTenant(world, context)
}

/** Throws `key_unknown` if it was deleted a moment ago, and the caller's key with it. */
export async function getTenant(
  world: Pick<World, 'store'>,
  { tenantId }: RequestContext,
): Promise<StoredTenant> {
  const tenant = await world.store.tenants.find(tenantId)
  if (tenant === null) throw new ServiceError('key_unknown')
  return tenant
}
