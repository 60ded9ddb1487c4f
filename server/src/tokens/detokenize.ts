import { authorize } from '../access/authorize.ts'
import type { Caller } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import { DETOKENIZE_TOKENS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { ok, type Answer } from '../http/endpoint.ts'
import type { World } from '../world/world.ts'
import { evaluatePlace, findMentions, idsOf, refuseUnknown } from './mentions.ts'
import { readingMeans, showTokens } from './shown-tokens.ts'
import { inSlices } from './slices.ts'
import type { TokenSettings } from './token-settings.ts'

/**
 * Answers with `payload`, each expression in its strings replaced by what the caller may see of the token.
 *
 * All tokens are read at once, each once. Throws `expression_invalid`, `detokenize_tokens_max`,
 * `detokenize_tokens_unknown`, which comes before `permission_missing`, and `answer_too_large`.
 */
export async function detokenize(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  caller: Caller,
  payload: Json,
  { privacyShown }: TokenSettings,
): Promise<Answer> {
  const permission = 'token:read'
  const mentions = findMentions(payload)
  const { places } = mentions
  const ids = idsOf(places)
  if (ids.length === 0) {
    authorize(caller, permission)
    return ok(mentions.payload())
  }
  if (ids.length > DETOKENIZE_TOKENS_MAX) throw new ServiceError('detokenize_tokens_max')
  const found = await world.store.tokens.find(caller.tenantId, ids)
  const now = world.clock.now()
  const live = found.filter((it) => it.expiresAt === null || it.expiresAt > now)
  refuseUnknown(places, new Set(live.map((it) => it.id)))
  const means = readingMeans(world.random, ids.length)
  const shown = await showTokens(world, caller, live, { permission, now, means, privacyShown })
  const tokens = new Map(live.map(({ id }, at) => [id, shown[at]!]))
  await inSlices(world.clock, places.length, (at) => {
    const place = places[at]!
    const value = evaluatePlace(place, means, ({ id, whole }) => {
      const { data, wire } = tokens.get(id)!
      return whole ? wire() : (data ?? null)
    })
    place.put(value)
  })
  return ok(mentions.payload())
}
