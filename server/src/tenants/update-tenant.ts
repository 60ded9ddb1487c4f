import { authorize } from '../access/authorize.ts'
import { commit } from '../request/commit.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import { ok, type Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'
import { getTenant } from './get-tenant.ts'
import { parseUpdateTenant, renderTenant } from './wire.ts'

/**
 * Renames the caller's tenant and changes the settings and destinations in the request; the others stay.
 *
 * Settings apply from the next request on. A name that another tenant has is accepted, since a refusal would prove that it exists.
 * Throws `permission_missing`, `body_invalid`, `key_unknown`, and what commit() throws.
 */
export async function updateTenant(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  body: Json | undefined,
): Promise<Answer> {
  authorize(context, 'tenant:update')
  const { name, settings } = parseUpdateTenant(body)
  const current = await getTenant(world, context)
  const tenant = {
    ...current,
    name,
    settings: { ...current.settings, ...settings },
    modifiedBy: context.applicationId,
    modifiedAt: world.clock.now(),
  }
  const answer = ok(renderTenant(tenant))
  const conflict = await commit(
    world,
    context,
    [{ kind: 'update', entity: 'tenant', row: tenant }],
    answer,
  )
  if (conflict !== null) throw new ServiceError('key_unknown')
  return answer
}
