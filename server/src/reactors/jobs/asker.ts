import { commonDestinations } from '../../access/destinations.ts'
import { findApplication } from '../../access/get-application.ts'
import { rightsOf } from '../../access/identify.ts'
import type { Caller, Rights } from '../../base/access.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { World } from '../../world/world.ts'
import type { Asker, JobTerms } from './job-terms.ts'

/**
 * Returns the caller that a job is run for, as it is now: what was taken away from the application, or from the key that
 * invoked, is taken away from what has not been begun.
 *
 * Throws `key_unknown` when the tenant, the application or its key is gone.
 */
export async function callerOfJob(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { asker, traceId }: Pick<JobTerms, 'asker' | 'traceId'>,
): Promise<Caller> {
  const { applicationId, keyId, session } = asker
  const [tenant, application, keys] = await Promise.all([
    world.store.tenants.find(tenantId),
    findApplication(world, tenantId, applicationId),
    world.store.applications.keys(tenantId, applicationId),
  ])
  const hasKey = session !== null || keys.some((it) => it.id === keyId)
  if (tenant === null || application === null || !hasKey) throw new ServiceError('key_unknown')
  const rights: Rights = session === null ? rightsOf(application) : { type: 'session', ...session }
  return {
    tenantId,
    plan: tenant.plan,
    settings: tenant.settings,
    applicationId,
    keyId,
    ...rights,
    within: session?.within ?? null,
    destinations: commonDestinations(asker.destinations, application.destinations),
    traceId,
    decisions: [],
    recorded: 0,
    replay: null,
  }
}

/** Where the result may be sent now: to what was allowed when it was asked for, and still is. */
export async function reachOfResult(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { applicationId, destinations }: Asker,
): Promise<readonly string[] | null> {
  const application = await findApplication(world, tenantId, applicationId)
  return commonDestinations(destinations, application?.destinations ?? null)
}
