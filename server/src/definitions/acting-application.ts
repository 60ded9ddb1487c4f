import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import type { World } from '../ports/world.ts'
import { findApplication } from '../access/applications/get-application.ts'

/**
 * Refuses an application that a proxy or reactor cannot act for: one that is not the tenant's, or that uses no tokens.
 *
 * The application it acted for `before` may stay, even if it was deleted meanwhile, so that other members can still be changed.
 * Throws `body_invalid`. The check holds only for now: applications can be deleted, and expire.
 */
export async function refuseUnfitApplication(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  id: string | null,
  before: string | null = null,
): Promise<void> {
  if (id === null || id === before) return
  const application = await findApplication(world, context.tenantId, id)
  if (application !== null && application.type !== 'management') return
  throw new ServiceError('body_invalid', {
    'application.id': ['Must be a private or public application of this tenant.'],
  })
}
