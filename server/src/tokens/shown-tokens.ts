/** Opens tokens and shows each as far as the caller may see it. */
import { authorize, type Grant } from '../access/authorize.ts'
import type { RequestContext, Permission } from '../base/access.ts'
import type { Json, JsonObject } from '../base/json.ts'
import {
  EXPRESSION_WORK_CHARS_MAX,
  MASKS_SHOWN_CHARS_MAX,
  TOKEN_WORK_CHARS_MAX,
} from '../base/limits.ts'
import { CostBudget, type EvaluationContext } from '../expressions/template.ts'
import type { Random } from '../ports/random.ts'
import type { StoredToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { openData } from './sealing.ts'
import { shownData } from './show.ts'
import { inChunks } from './chunked-work.ts'
import { maskOf, renderToken } from './wire.ts'

export interface ShownToken {
  /** Undefined if the caller may not see it. */
  readonly data: Json | undefined
  /** Renders the whole token. */
  readonly wire: () => JsonObject
}

export interface Showing {
  readonly now: number
  readonly evaluationContext: EvaluationContext
  readonly privacyShown: boolean
}

/**
 * Returns `tokens` as `permission` lets the caller see them, in the same order.
 *
 * Throws `permission_missing`.
 */
export async function showTokens(
  world: Pick<World, 'clock' | 'keyring'>,
  context: RequestContext,
  tokens: readonly StoredToken[],
  { permission, ...showing }: Showing & { readonly permission: Permission },
): Promise<ShownToken[]> {
  const grants = tokens.map((it) => authorize(context, permission, it))
  return await showGranted(world, context, tokens, { grants, ...showing })
}

/** Returns `tokens` as far as `grants`, one per token, let the caller see them. */
export async function showGranted(
  world: Pick<World, 'clock' | 'keyring'>,
  context: RequestContext,
  tokens: readonly StoredToken[],
  { grants, now, evaluationContext, privacyShown }: Showing & { readonly grants: readonly Grant[] },
): Promise<ShownToken[]> {
  const keys = await world.keyring.open(context.tenantId)
  const shown: ShownToken[] = []
  const showing = inChunks(world.clock, tokens.length, (index) => {
    const token = tokens[index]!
    const grant = grants[index]!
    const data = shownData(
      token,
      openData(keys, token, now, grant),
      grant.transform,
      evaluationContext,
    )
    const wire = (): JsonObject =>
      renderToken(token, {
        tenantId: context.tenantId,
        data,
        mask: maskOf(token),
        privacy: privacyShown,
        deduplicated: false,
      })
    shown.push({ data, wire })
  })
  if (showing !== undefined) await showing
  return shown
}

/** Bounds the total work of the expressions in an answer of `tokens` tokens. */
export function readingEvaluationContext(random: Random, tokens: number): EvaluationContext {
  const workMax = EXPRESSION_WORK_CHARS_MAX + tokens * TOKEN_WORK_CHARS_MAX
  return { random, costBudget: new CostBudget(workMax, MASKS_SHOWN_CHARS_MAX) }
}
