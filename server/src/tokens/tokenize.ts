import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import { ok, type Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'
import { maskedDataOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { makeTokens } from './make-tokens.ts'
import type { BuiltToken } from './render-tokens.ts'
import { buildTokenizePlan } from './tokenize-plan.ts'
import { inChunks } from './chunked-work.ts'
import type { TokenSettings } from './token-settings.ts'
import { renderToken, renderDuplicate } from './wire.ts'

/**
 * Tokenizes `payload` and answers with its structure, each leaf replaced by its token.
 *
 * Either all tokens of a payload are stored or none. The answer never contains plaintext, whatever the caller's rules: a
 * token request at the root shows its evaluated `mask`, a nested one shows the mask as `data`. `answerWith` can wrap the
 * structure. Modifies `payload`. Throws, or rejects with, what buildTokenizePlan(), parseDraft() and makeTokens() throw.
 *
 * Source: interface.md, Tokenize.
 */
export function tokenize(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  payload: Json,
  settings: TokenSettings,
  answerWith: (tokens: Json) => Answer = ok,
): Promise<Answer> {
  const plan = buildTokenizePlan(payload, settings.tokensMax)
  const now = world.clock.now()
  const drafts = Array<Draft>(plan.leaves.length)
  const drafting = inChunks(world.clock, plan.leaves.length, (index) => {
    drafts[index] = plan.leaves[index]!.draft(now)
  })
  return drafting === undefined ? make() : drafting.then(make)

  function make(): Promise<Answer> {
    return makeTokens(world, context, drafts, {
      renderBuilt: (built, index) => {
        const leaf = plan.leaves[index]!
        return leaf.plain ? built.token.id : renderLeaf(context, built, leaf.root, settings)
      },
      answer: (rendered) => answerWith(plan.fill(rendered)),
    })
  }
}

function renderLeaf(
  context: RequestContext,
  { draft, token, transform, duplicate, evaluationContext, shortLivedExpired }: BuiltToken,
  root: boolean,
  { privacyShown }: TokenSettings,
): Json {
  const { tenantId } = context
  if (duplicate === null) return renderDuplicate(token, tenantId)
  // The mask is evaluated even if it is not shown, to reject one that cannot be evaluated.
  const masked = maskedDataOf(draft, evaluationContext, shortLivedExpired)
  const own = transform === 'redact' ? undefined : masked
  const shown = duplicate === undefined ? own : duplicate.masked
  return renderToken(token, {
    tenantId,
    data: root ? undefined : shown,
    mask: root ? shown : undefined,
    privacy: privacyShown,
    deduplicated: duplicate === undefined ? undefined : true,
  })
}
