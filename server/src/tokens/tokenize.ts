import type { RequestContext } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import { ok, type Answer } from '../http/endpoint.ts'
import type { World } from '../ports/world.ts'
import { maskedDataOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { makeTokens, type BuiltToken } from './make-tokens.ts'
import { buildTokenizePlan } from './tokenize-plan.ts'
import { inChunks } from './chunked-work.ts'
import type { TokenSettings } from './token-settings.ts'
import { renderToken, renderDuplicate } from './wire.ts'

/**
 * Turns `payload` into tokens and answers with its structure, each leaf replaced by its token.
 *
 * All tokens of a payload are stored or none is. Plain data is never in the answer, whatever the
 * caller's rules: a token request at the root shows its evaluated `mask`, one further in shows it as
 * `data`. The answer is that structure, unless `answerWith` makes more of it. `payload` is changed. Throws, or rejects with,
 * what buildTokenizePlan(), parseDraft() and makeTokens() throw.
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
      reply: (built, index) => {
        const leaf = plan.leaves[index]!
        return leaf.plain ? built.token.id : renderLeaf(context, built, leaf.root, settings)
      },
      answer: (replies) => answerWith(plan.fill(replies)),
    })
  }
}

function renderLeaf(
  context: RequestContext,
  { draft, token, transform, duplicate, evaluationContext, later }: BuiltToken,
  root: boolean,
  { privacyShown }: TokenSettings,
): Json {
  const { tenantId } = context
  if (duplicate === null) return renderDuplicate(token, tenantId)
  // The mask is evaluated even where it is not shown: one that cannot be is refused.
  const masked = maskedDataOf(draft, evaluationContext, later)
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
