import { allowedDestinations, commonDestinations } from '../../access/destinations.ts'
import { findApplication } from '../../access/applications/get-application.ts'
import { rightsOf } from '../../access/resolve-principal.ts'
import type { KeyReference, Rights } from '../../base/access.ts'
import type { RequestContext } from '../../request/context.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { World } from '../../ports/world.ts'
import type { Initiator, JobState } from './job-state.ts'

/**
 * Returns the context of a job, with its principal's current permissions: a permission revoked from the application, from
 * the invoking key, or from the grantor of a session is revoked from jobs that have not started.
 *
 * Throws `key_unknown` if the tenant, the application, its key or the grantor is gone; for a session, also if the key that
 * opened or authorized it is. A session that merely ended does not count: its keys do.
 */
export async function contextOfJob(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { initiator, traceId }: Pick<JobState, 'initiator' | 'traceId'>,
): Promise<RequestContext> {
  const { applicationId, keyId, session } = initiator
  const grantorId = session?.giverId
  const keys = session === null ? [{ applicationId, keyId }] : (session.keys ?? [])
  const [tenant, application, grantor, ...working] = await Promise.all([
    world.store.tenants.find(tenantId),
    findApplication(world, tenantId, applicationId),
    grantorId === undefined ? null : findApplication(world, tenantId, grantorId),
    ...keys.map((it) => exists(world, tenantId, it)),
  ])
  const isGiven = grantorId === undefined || grantor !== null
  if (tenant === null || application === null || !isGiven || working.includes(false)) {
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
    keys,
    ...rights,
    within: grantor === null ? (session?.within ?? null) : rightsOf(grantor),
    grantorId,
    destinations: commonDestinations(
      initiator.destinations,
      allowedDestinations(tenant, grantor === null ? [application] : [application, grantor]),
    ),
    // No page sends anything in a job.
    allowedOrigins: null,
    traceId,
    decisions: [],
    recorded: 0,
    idempotency: null,
    kept: { until: Infinity },
  }
}

async function exists(
  { store }: Pick<World, 'store'>,
  tenantId: string,
  { applicationId, keyId }: KeyReference,
): Promise<boolean> {
  const keys = await store.applications.keys(tenantId, applicationId)
  return keys.some((it) => it.id === keyId)
}

/**
 * Returns the destinations allowed for the result: those allowed when it was requested that the tenant, the application, and for
 * a session its grantor, still allow. Once one of these is deleted or has expired, there are none.
 */
export async function allowedDestinationsOfResult(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { applicationId, destinations, session }: Initiator,
): Promise<readonly string[] | null> {
  const ids = [applicationId, session?.giverId].filter((it) => it !== undefined)
  const [tenant, ...applications] = await Promise.all([
    world.store.tenants.find(tenantId),
    ...ids.map((it) => findApplication(world, tenantId, it)),
  ])
  if (tenant === null) return []
  return commonDestinations(destinations, allowedDestinations(tenant, applications))
}
