import { rightsOf } from '../../access/resolve-principal.ts'
import { allowedDestinations } from '../../access/destinations.ts'
import type { EphemeralKey, EphemeralKeys } from '../../access/ephemeral-keys.ts'
import { findApplication } from '../../access/applications/get-application.ts'
import type { Rights } from '../../base/access.ts'
import type { RequestContext } from '../../request/context.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { StoredApplication } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import type { OpenReactor } from '../wire.ts'

/**
 * The identities of a run: an ephemeral key while the code runs, and a context for creating tokens from its result.
 *
 * In the audit log the reactor stands in place of their key. Decision 0029.
 */

/** Issues the code an ephemeral key of its application; null if it has none. The caller must end the key. */
export function issueEphemeralKey(
  { random }: Pick<World, 'random'>,
  { tenantId }: RequestContext,
  { reactor, application }: OpenReactor,
  ephemeralKeys: EphemeralKeys,
): EphemeralKey | null {
  if (application === null) return null
  const subject = { tenantId, applicationId: application.id, reactorId: reactor.id }
  return ephemeralKeys.issue(random, application.type, subject)
}

/** Throws `reactor_application_gone` if the reactor acts for an application that does not exist (any more). */
export function refuseWithoutApplication({ config, application }: OpenReactor): void {
  if (config.applicationId === null || application !== null) return
  throw new ServiceError('reactor_application_gone')
}

/**
 * Returns the context that creates the tokens of the result: that of the application, with its current permissions; without
 * one, that of the initiator, who may create them because the code was installed for that.
 *
 * Throws `reactor_application_gone`.
 */
export async function tokenCreatorContext(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  { reactor, config }: OpenReactor,
): Promise<RequestContext> {
  // What the code did is done: its result is not refused because of rights that changed while it ran.
  const unrecorded = { keyId: reactor.id, decisions: [], recorded: 0, reauthenticate: undefined! }
  if (config.applicationId === null) {
    const within = context.within === null ? null : mayCreate(context.within)
    return { ...context, ...unrecorded, ...mayCreate(context), within }
  }
  const application = await findApplication(world, context.tenantId, config.applicationId)
  if (application === null) throw new ServiceError('reactor_application_gone')
  return { ...context, ...unrecorded, ...standingOf(context, application), within: null }
}

function standingOf(context: RequestContext, application: StoredApplication) {
  const destinations = allowedDestinations(context, [application])
  return { applicationId: application.id, destinations, ...rightsOf(application) }
}

function mayCreate({ type, permissions, rules }: Rights): Rights {
  return { type, permissions: [...permissions, 'token:create'], rules }
}
