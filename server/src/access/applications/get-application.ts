import type { RequestContext } from '../../request/context.ts'
import { isUuid } from '../../base/id.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { StoredApplication } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { authorize } from '../authorize.ts'

/** Throws `permission_missing`, `application_not_found`. */
export async function readApplication(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<StoredApplication> {
  authorize(context, 'application:read')
  return await getApplication(world, context, id)
}

/** Returns the application of the calling key. Every key may ask: it learns nothing about others. */
export async function readOwnApplication(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
): Promise<StoredApplication> {
  return await getApplication(world, context, context.applicationId)
}

/**
 * Returns the application with this id in the caller's tenant, or throws `application_not_found`: the same whether it never
 * existed, is another tenant's or has expired, or the id is malformed.
 */
export async function getApplication(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<StoredApplication> {
  const it = await findApplication(world, context.tenantId, id)
  if (it === null) throw new ServiceError('application_not_found')
  return it
}

/** Returns the application with this id, or null if getApplication() would not find it. */
export async function findApplication(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  id: string,
): Promise<StoredApplication | null> {
  const it = isUuid(id) ? await world.store.applications.find(tenantId, id) : null
  if (it === null || (it.expiresAt !== null && it.expiresAt <= world.clock.now())) return null
  return it
}
