import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import { LARGE_BYTES_MIN, PROXY_TOKENS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { joinTickBatch } from '../request/tick-batching.ts'
import { runSliced } from '../base/time-slice.ts'
import { isLive } from '../tokens/find-live.ts'
import { grantReferenced, idsOf, refuseUnknown } from '../tokens/token-references.ts'
import { bytesOf, renderWithinBudget, ReadBudget } from '../tokens/read-budget.ts'
import { readGranted, type GrantedTokens } from '../tokens/read-granted.ts'
import { showGranted } from '../tokens/shown-tokens.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import type { BodyExpressions } from './bodies/body-expressions.ts'

/** When tokens are used, and the host that their data is sent to. */
interface ReferencedUse {
  readonly now: number
  readonly destination: string
}

/**
 * Returns the tokens referenced in `body`, each once, without long data: all found at once.
 *
 * Throws `detokenize_tokens_max`, and `detokenize_tokens_unknown` for tokens that are absent, expired, not committed or another
 * tenant's.
 */
export async function findReferenced(
  world: Pick<World, 'store'>,
  context: RequestContext,
  { locations, references }: BodyExpressions,
  { now, destination }: ReferencedUse,
): Promise<FoundToken[]> {
  const ids = idsOf(references)
  if (ids.length === 0) return []
  if (ids.length > PROXY_TOKENS_MAX) throw new ServiceError('detokenize_tokens_max')
  const found = await world.store.tokens.lookUp(context.tenantId, ids)
  const live = found.filter((it) => isLive(it, now))
  if (live.length < ids.length) {
    refuseUnknown(context, 'proxy:invoke', { locations, tokens: live }, destination)
  }
  return live
}

/**
 * Returns the tokens that findReferenced() finds, with the data that the caller may use of them; `destination` as in
 * authorize().
 *
 * Throws what findReferenced() and grantReferenced() throw, `answer_too_large` and `tenant_busy`.
 */
export async function readReferenced(
  world: Pick<World, 'store'>,
  context: RequestContext,
  body: BodyExpressions,
  use: ReferencedUse,
): Promise<GrantedTokens> {
  const { locations } = body
  return await readGranted(world, context, {
    find: async () => ({ tokens: await findReferenced(world, context, body, use) }),
    authorize: (tokens) =>
      grantReferenced(context, 'proxy:invoke', { locations, tokens }, use.destination),
    budget: new ReadBudget(context, { sends: true }),
  })
}

/**
 * Returns the body with each expression replaced by what `grants`, one per token, allow: the data where the caller's rules
 * reveal it, the mask where they mask it, nothing where they redact it.
 *
 * Rejects with `expression_invalid` and `tenant_busy`.
 */
export async function detokenizeBody(
  world: Pick<World, 'clock' | 'random' | 'keyring'>,
  context: RequestContext,
  body: BodyExpressions,
  { tokens, ...more }: GrantedTokens & { readonly now: number; readonly privacyShown: boolean },
): Promise<Buffer> {
  // The audit event begun just before is written in the meantime.
  await joinTickBatch(world.clock)
  let attempts = 0
  let kept = 0
  try {
    const rendered = await renderWithinBudget(
      world,
      context,
      { tokens, sends: true },
      async (evaluationContext) => {
        attempts++
        const shown = await showGranted(world, context, tokens, { evaluationContext, ...more })
        const byId = new Map(tokens.map(({ id }, at) => [id, shown[at]!]))
        const rendering = body.render(evaluationContext, ({ id, whole }): Json => {
          const { data, wire } = byId.get(id)!
          return whole ? wire() : (data ?? null)
        })
        return await runSliced(world.clock, rendering)
      },
    )
    kept = rendered.length
    return rendered
  } finally {
    const large = attempts !== 1 || bytesOf(tokens) > LARGE_BYTES_MIN
    if (large || kept > LARGE_BYTES_MIN) context.quota?.().releaseLargeRead(kept)
  }
}
