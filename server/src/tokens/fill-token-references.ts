import type { Permission } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import {
  evaluateLocation,
  grantReferenced,
  idsOf,
  tokenReferencesOf,
  refuseUnknown,
  type PayloadReferences,
} from './token-references.ts'
import { renderWithinBudget, ReadBudget } from './read-budget.ts'
import { isLive } from './find-live.ts'
import { readGranted } from './read-granted.ts'
import { showGranted } from './shown-tokens.ts'
import { inChunks } from './chunked-work.ts'

export interface Filling {
  /** The permission that decides what the caller may see of each token. */
  readonly permission: Permission
  /** Maximum number of distinct tokens referenced. */
  readonly tokensMax: number
  readonly privacyShown: boolean
}

export interface Filled {
  readonly payload: Json
  /** The referenced tokens, each once. */
  readonly tokens: readonly FoundToken[]
  /** The values inserted: token data, and the results of expressions. */
  readonly shown: readonly Json[]
}

/**
 * Returns the payload of the token references, each expression replaced by what the caller may see of the token.
 *
 * Reads all tokens at once, each only once. Throws `detokenize_tokens_max`, `detokenize_tokens_unknown` (which takes
 * precedence over `permission_missing`), `permission_missing`, `answer_too_large`, `tenant_busy` and `expression_invalid`.
 */
export async function fillTokenReferences(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  { locations, payload }: PayloadReferences,
  { permission, tokensMax, privacyShown }: Filling,
): Promise<Filled> {
  const ids = idsOf(locations.flatMap(tokenReferencesOf))
  if (ids.length === 0) return { payload: payload(), tokens: [], shown: [] }
  if (ids.length > tokensMax) throw new ServiceError('detokenize_tokens_max')
  const now = world.clock.now()
  const { tokens, grants } = await readGranted(world, context, {
    find: async () => {
      const found = await world.store.tokens.lookUp(context.tenantId, ids)
      const live = found.filter((it) => isLive(it, now))
      refuseUnknown(context, permission, { locations, tokens: live })
      return { tokens: live }
    },
    authorize: (found) => grantReferenced(context, permission, { locations, tokens: found }),
    budget: new ReadBudget(context),
  })
  const shown = await renderWithinBudget(
    world,
    context,
    { tokens, sends: false },
    async (evaluationContext) => {
      const readable = await showGranted(world, context, tokens, {
        grants,
        now,
        evaluationContext,
        privacyShown,
      })
      const byId = new Map(tokens.map(({ id }, at) => [id, readable[at]!]))
      const values: Json[] = readable.map(({ data }) => data ?? null)
      await inChunks(world.clock, locations.length, (at) => {
        const location = locations[at]!
        const value = evaluateLocation(location, evaluationContext, ({ id, whole }) => {
          const { data, wire } = byId.get(id)!
          return whole ? wire() : (data ?? null)
        })
        location.put(value)
        // In a whole token only the data is secret.
        if (!tokenReferencesOf(location).some((it) => it.whole)) values.push(value)
      })
      return values
    },
  )
  return { payload: payload(), tokens, shown }
}
