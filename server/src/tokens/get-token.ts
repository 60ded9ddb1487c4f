import type { RequestContext } from '../request/context.ts'
import { ok, type Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'
import { readLive } from './find-live.ts'
import { showData } from './shown-tokens.ts'
import type { TokenSettings } from './token-settings.ts'
import { maskOf, renderToken } from './wire.ts'

/**
 * Returns the token `id`, its data redacted, masked or revealed according to the caller's rules.
 *
 * Throws `token_not_found` if it is absent, expired or another tenant's, and `permission_missing` if it is in containers
 * the caller may not read.
 */
export async function getToken(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
  { privacyShown }: TokenSettings,
): Promise<Answer> {
  const now = world.clock.now()
  const { token, grant } = await readLive(world, context, id, { permission: 'token:read', now })
  const keys = await world.keyring.open(context.tenantId)
  return ok(
    renderToken(token, {
      tenantId: context.tenantId,
      data: showData(keys, token, grant, { now, evaluationContext: { random: world.random } }),
      mask: maskOf(token),
      privacy: privacyShown,
      deduplicated: false,
    }),
  )
}
