import { commonDestinations } from '../../access/destinations.ts'
import { findApplication } from '../../access/get-application.ts'
import { rightsOf } from '../../access/authenticate.ts'
import type { Caller, Rights } from '../../base/access.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { World } from '../../world/world.ts'
import type { Asker, JobState } from './job-state.ts'

/**
 * Returns the caller that a job is run for, as it is now: what was taken away from the application, from the key that
 * invoked, or from whoever gave a session its rights, is taken away from what has not been begun.
 *
 * Throws `key_unknown` when the tenant, the application, its key or the giver is gone.
 */
export async function callerOfJob(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { asker, traceId }: Pick<JobState, 'asker' | 'traceId'>,
): Promise<Caller> {
  const { applicationId, keyId, session } = asker
  const giverId = session?.giverId
  const [tenant, application, keys, giver] = await Promise.all([
    world.store.tenants.find(tenantId),
    findApplication(world, tenantId, applicationId),
    world.store.applications.keys(tenantId, applicationId),
    giverId === undefined ? null : findApplication(world, tenantId, giverId),
  ])
  const hasKey = session !== null || keys.some((it) => it.id === keyId)
  const isGiven = giverId === undefined || giver !== null
  if (tenant === null || application === null || !hasKey || !isGiven) {
    throw new ServiceError('key_unknown')
  }
  const rights: Rights = session === null ? rightsOf(application) : { type: 'session', ...session }
  return {
    tenantId,
    plan: tenant.plan,
    settings: tenant.settings,
    applicationId,
    keyId,
    ...rights,
    within: giver === null ? (session?.within ?? null) : rightsOf(giver),
    giverId,
    destinations: [application.destinations, giver?.destinations ?? null].reduce(
      commonDestinations,
      asker.destinations,
    ),
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
