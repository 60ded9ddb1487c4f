import { authorize } from '../access/authorize.ts'
import { findApplication } from '../access/applications/get-application.ts'
import type { RequestContext } from '../request/context.ts'
import { isUuid } from '../base/id.ts'
import type { JsonObject } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import type { StoredReactor } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { openReactorConfiguration } from './sealed-reactor-configuration.ts'
import { renderReactor, type OpenReactor } from './wire.ts'

/** Throws `permission_missing`, `reactor_not_found`. */
export async function readReactor(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<JsonObject> {
  authorize(context, 'reactor:read')
  const reactor = await getReactor(world, context, id)
  return renderReactor(context.tenantId, await openReactor(world, context, reactor))
}

/**
 * Returns the reactor with this id in the caller's tenant. Throws the same `reactor_not_found` if it does not exist,
 * belongs to another tenant, or the id is malformed.
 */
export async function getReactor(
  world: Pick<World, 'store'>,
  { tenantId }: RequestContext,
  id: string,
): Promise<StoredReactor> {
  const it = isUuid(id) ? await world.store.rows('reactor').find(tenantId, id) : null
  if (it === null) throw new ServiceError('reactor_not_found')
  return it
}

/** Opens the configuration of a reactor, and looks up its application. */
export async function openReactor(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  { tenantId }: RequestContext,
  reactor: StoredReactor,
): Promise<OpenReactor> {
  const config = openReactorConfiguration(await world.keyring.open(tenantId), reactor)
  const { applicationId } = config
  const application =
    applicationId === null ? null : await findApplication(world, tenantId, applicationId)
  return { reactor, config, application }
}
