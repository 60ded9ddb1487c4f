import { authorize } from '../../access/authorize.ts'
import { commit } from '../../access/commit.ts'
import { makeChange } from '../../access/definition.ts'
import type { RequestContext } from '../../base/access.ts'
import type { JsonObject } from '../../base/json.ts'
import { ok, type Answer } from '../../http/endpoint.ts'
import type { World } from '../../ports/world.ts'
import { callbackSecrets, newSecret, withSecret } from './secrets.ts'
import { renderSecrets } from './wire.ts'

/**
 * Shows what the tenant's callbacks are signed with. Whoever sees it can sign callbacks, so it takes the right to
 * change reactors. Throws `permission_missing`.
 */
export async function readCallbackSecret(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
): Promise<JsonObject> {
  authorize(context, 'reactor:update')
  // No reactor is updated: that somebody has seen the secret is what has to be found later.
  const about = { entityType: 'callback_secret', operation: 'read' }
  context.decisions.push({ ...context.decisions.pop()!, about })
  return renderSecrets(await callbackSecrets(world, context.tenantId))
}

/**
 * Makes a new secret, and signs with the last one, too, for CALLBACK_SECRET_OVERLAP_MS.
 *
 * Throws `permission_missing`, `reactor_busy`, and what commit() throws.
 */
export async function rotateCallbackSecret(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
): Promise<Answer> {
  authorize(context, 'reactor:update')
  // Once, for it takes long: others may be quicker time and again.
  const fresh = await newSecret(world, context.tenantId)
  return await makeChange('reactor_busy', async () => {
    const { secrets, stored } = await withSecret(world, context.tenantId, fresh)
    const answer = ok(renderSecrets(secrets))
    const change = { kind: 'put-callback-secrets', secrets: stored } as const
    return (await commit(world, context, [change], answer)) === null ? answer : null
  })
}
