import { getApplication } from '../../access/get-application.ts'
import type { Caller } from '../../base/access.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { World } from '../../world/world.ts'

/**
 * Refuses an application that a proxy cannot act for: one that is not the tenant's, or that touches no tokens.
 *
 * Throws `body_invalid`. That it is there now is no promise: applications can be deleted, and expire.
 */
export async function refuseUnfitApplication(
  world: Pick<World, 'clock' | 'store'>,
  caller: Caller,
  id: string,
): Promise<void> {
  const application = await getApplication(world, caller, id).catch((error: unknown) => {
    if (error instanceof ServiceError && error.code === 'application_not_found') return null
    throw error
  })
  if (application !== null && application.type !== 'management') return
  throw new ServiceError('body_invalid', {
    'application.id': ['Must be a private or public application of this tenant.'],
  })
}
