import type { Caller } from '../base/access.ts'
import { isUuid } from '../base/id.ts'
import type { Json } from '../base/json.ts'
import { PROXY_TOKENS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Mention } from '../tokens/mentions.ts'
import { readingMeans, showTokens, type ShownToken } from '../tokens/shown-tokens.ts'
import type { StoredToken } from '../world/store.ts'
import type { World } from '../world/world.ts'
import type { ReadBody } from './bodies.ts'

/**
 * Returns the tokens that `mentions` name: all read at once, each once.
 *
 * Throws `detokenize_tokens_max`, and `proxy_tokens_unknown` for what is absent, expired, not committed or
 * another tenant's.
 */
export async function findMentioned(
  world: Pick<World, 'store'>,
  { tenantId }: Caller,
  mentions: readonly Mention[],
  now: number,
): Promise<StoredToken[]> {
  const ids = [...new Set(mentions.map((it) => it.id))]
  if (ids.length === 0) return []
  if (ids.length > PROXY_TOKENS_MAX) throw new ServiceError('detokenize_tokens_max')
  const found = await world.store.tokens.find(tenantId, ids)
  const live = found.filter((it) => it.expiresAt === null || it.expiresAt > now)
  const known = new Set(live.map((it) => it.id))
  const unknown = ids.filter((it) => !known.has(it))
  if (unknown.length > 0) throw unknownTokens(unknown)
  return live
}

/** A uuid is no secret and is named; anything else in braces may be what should have been a token. */
function unknownTokens(ids: readonly string[]): ServiceError {
  const uuids = ids.filter(isUuid)
  const messages = uuids.map((id) => `There is no token ${id}.`)
  if (uuids.length < ids.length) messages.push('There is no token of this id.')
  return new ServiceError('proxy_tokens_unknown', { error: messages }, { named: uuids })
}

/**
 * Returns the body with what the caller may send of `tokens` in the places of its expressions: the data where
 * its rules reveal it, the mask where they mask it, nothing where they redact it.
 *
 * Each use is decided and recorded, with the host of `url`. Throws `permission_missing`, `answer_too_large`
 * and `expression_invalid`.
 */
export async function detokenizeBody(
  world: Pick<World, 'clock' | 'random' | 'keyring'>,
  caller: Caller,
  body: ReadBody,
  tokens: readonly StoredToken[],
  { now, url, privacyShown }: { readonly now: number; readonly url: URL; privacyShown: boolean },
): Promise<() => Buffer> {
  const means = readingMeans(world.random, tokens.length)
  const shown = await showTokens(world, caller, tokens, {
    permission: 'proxy:invoke',
    destination: url.host,
    now,
    means,
    privacyShown,
  })
  const byId = new Map<string, ShownToken>(tokens.map(({ id }, at) => [id, shown[at]!]))
  return () =>
    body.render(means, ({ id, whole }): Json => {
      const { data, wire } = byId.get(id)!
      return whole ? wire : (data ?? null)
    })
}
