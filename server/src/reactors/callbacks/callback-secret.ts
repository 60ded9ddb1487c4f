import { authorize } from '../../access/authorize.ts'
import { commit } from '../../request/commit.ts'
import { makeChange } from '../../definitions/revisions.ts'
import type { RequestContext } from '../../request/context.ts'
import type { JsonObject } from '../../base/json.ts'
import { ok, type Answer } from '../../request/response.ts'
import type { World } from '../../ports/world.ts'
import { callbackSecrets, newSecret, withSecret } from './secrets.ts'
import { renderSecrets } from './wire.ts'

/**
 * Returns the secrets that sign the tenant's callbacks. They allow signing callbacks, so reading them requires the
 * permission to change reactors. Throws `permission_missing`.
 */
export async function readCallbackSecret(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
): Promise<JsonObject> {
  authorize(context, 'reactor:update')
  // Recorded as a read of the secret, not as an update of a reactor, so that the audit log shows who has seen it.
  const about = { entityType: 'callback_secret', operation: 'read' }
  context.decisions.push({ ...context.decisions.pop()!, about })
  return renderSecrets(await callbackSecrets(world, context.tenantId))
}

/**
 * Creates a new secret; the previous one also signs for CALLBACK_SECRET_OVERLAP_MS.
 *
 * Throws `permission_missing`, `reactor_busy`, and what commit() throws.
 */
export async function rotateCallbackSecret(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
): Promise<Answer> {
  authorize(context, 'reactor:update')
  // Generated once, outside the attempts, because it is slow: other requests could win each time.
  const fresh = await newSecret(world, context.tenantId)
  return await makeChange('reactor_busy', async () => {
    const { secrets, change } = await withSecret(world, context.tenantId, fresh)
    const answer = ok(renderSecrets(secrets))
    return (await commit(world, context, [change], answer)) === null ? answer : null
  })
}
