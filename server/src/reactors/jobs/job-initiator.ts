import { commonDestinations } from '../../access/destinations.ts'
import { findApplication } from '../../access/get-application.ts'
import { rightsOf } from '../../access/authenticate.ts'
import type { RequestContext, Rights } from '../../base/access.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { World } from '../../ports/world.ts'
import type { Initiator, JobState } from './job-state.ts'

/**
 * Returns the context of a job, with its principal's current permissions: a permission revoked from the application, from
 * the invoking key, or from the grantor of a session is revoked from jobs that have not started.
 *
 * Throws `key_unknown` if the tenant, the application, its key or the grantor is gone.
 */
export async function contextOfJob(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { initiator, traceId }: Pick<JobState, 'initiator' | 'traceId'>,
): Promise<RequestContext> {
  const { applicationId, keyId, session } = initiator
  const grantorId = session?.giverId
  const [tenant, application, keys, grantor] = await Promise.all([
    world.store.tenants.find(tenantId),
    findApplication(world, tenantId, applicationId),
    world.store.applications.keys(tenantId, applicationId),
    grantorId === undefined ? null : findApplication(world, tenantId, grantorId),
  ])
  const hasKey = session !== null || keys.some((it) => it.id === keyId)
  const isGiven = grantorId === undefined || grantor !== null
  if (tenant === null || application === null || !hasKey || !isGiven) {
    throw new ServiceError('key_unknown')
  }
  const rights: Rights =
    session === null
      ? rightsOf(application)
      : { type: 'session', permissions: session.permissions, rules: session.rules }
  return {
    tenantId,
    plan: tenant.plan,
    settings: tenant.settings,
    applicationId,
    keyId,
    ...rights,
    within: grantor === null ? (session?.within ?? null) : rightsOf(grantor),
    grantorId,
    destinations: [application.destinations, grantor?.destinations ?? null].reduce(
      commonDestinations,
      initiator.destinations,
    ),
    traceId,
    decisions: [],
    recorded: 0,
    replay: null,
  }
}

/** Returns the destinations allowed for the result: those allowed when it was requested that still are. */
export async function allowedDestinationsOfResult(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { applicationId, destinations }: Initiator,
): Promise<readonly string[] | null> {
  const application = await findApplication(world, tenantId, applicationId)
  return commonDestinations(destinations, application?.destinations ?? null)
}
