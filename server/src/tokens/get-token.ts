import { authorize } from '../access/authorize.ts'
import type { Caller } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import { ok, type Answer } from '../http/endpoint.ts'
import type { World } from '../world/world.ts'
import { openData } from './sealing.ts'
import { shownData } from './show.ts'
import type { TokenSettings } from './token-settings.ts'
import { maskOf, renderToken } from './wire.ts'

/**
 * Answers with the token `id`, its data redacted, masked or revealed as the caller's rules say.
 *
 * Throws `token_not_found` for one that is absent, expired or another tenant's, `permission_missing`
 * for one in containers the caller may not read.
 */
export async function getToken(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  caller: Caller,
  id: string,
  { privacyShown }: TokenSettings,
): Promise<Answer> {
  const [token] = await world.store.tokens.find(caller.tenantId, [id])
  const now = world.clock.now()
  if (token === undefined || (token.expiresAt !== null && token.expiresAt <= now)) {
    throw new ServiceError('token_not_found')
  }
  const { transform } = authorize(caller, 'token:read', token.containers, token.id)
  const keys = await world.keyring.open(caller.tenantId)
  const data = openData(keys, token, now)
  return ok(
    renderToken(token, {
      tenantId: caller.tenantId,
      data: shownData(token, data, transform, { random: world.random }),
      mask: maskOf(token),
      privacy: privacyShown,
      deduplicated: false,
    }),
  )
}
