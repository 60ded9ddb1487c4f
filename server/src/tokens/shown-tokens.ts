/** Opens tokens and shows each as far as the caller may see it. */
import type { Grant } from '../access/authorize.ts'
import { unreadableIn, UnreadableValues } from '../request/open-value.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json, JsonObject } from '../base/json.ts'
import {
  EXPRESSION_WORK_CHARS_MAX,
  MASKS_SHOWN_CHARS_MAX,
  TOKEN_WORK_CHARS_MAX,
} from '../base/limits.ts'
import { CostBudget, type EvaluationContext } from '../expressions/template.ts'
import type { Random } from '../ports/random.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { openData } from './sealing.ts'
import { shownData } from './show.ts'
import { inChunks } from './chunked-work.ts'
import { showsData } from './read-granted.ts'
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
 * Returns the tokens of a list as far as `grants`, one per token, let the caller see them, in the same order. Shows a damaged
 * token as unreadable, without data, so that it does not hide the others, and logs its name.
 */
export async function showTokens(
  world: Pick<World, 'clock' | 'keyring' | 'log'>,
  { tenantId }: RequestContext,
  tokens: readonly FoundToken[],
  { grants, ...showing }: Showing & { readonly grants: readonly Grant[] },
): Promise<ShownToken[]> {
  const keys = await world.keyring.open(tenantId)
  const unreadable = new UnreadableValues()
  const shown = await showEach(world.clock, tokens, (token, index) => {
    const show = (by: TenantKeys): ShownToken =>
      showToken(by, tenantId, token, grants[index]!, showing)
    try {
      return show(keys)
    } catch (error) {
      if (unreadableIn(error) === null) throw error
      return showAgain(token, show)
    }
  })
  unreadable.log(world, tenantId)
  return shown

  /** Another server may have sealed the token under a key that is newer than `keys`. */
  async function showAgain(
    token: FoundToken,
    show: (keys: TenantKeys) => ShownToken,
  ): Promise<ShownToken> {
    try {
      return show(await world.keyring.open(tenantId))
    } catch (error) {
      unreadable.add(error)
      return unreadableToken(tenantId, token, showing)
    }
  }
}

/** Returns `tokens` as far as `grants`, one per token, let the caller see them. Throws `value_unreadable` if one is damaged. */
export async function showGranted(
  world: Pick<World, 'clock' | 'keyring'>,
  { tenantId }: RequestContext,
  tokens: readonly FoundToken[],
  { grants, ...showing }: Showing & { readonly grants: readonly Grant[] },
): Promise<ShownToken[]> {
  const keys = await world.keyring.open(tenantId)
  return await showEach(world.clock, tokens, (token, index) =>
    showToken(keys, tenantId, token, grants[index]!, showing),
  )
}

async function showEach(
  clock: World['clock'],
  tokens: readonly FoundToken[],
  show: (token: FoundToken, index: number) => ShownToken | Promise<ShownToken>,
): Promise<ShownToken[]> {
  const shown: ShownToken[] = []
  const showing = inChunks(clock, tokens.length, (index) => {
    const one = show(tokens[index]!, index)
    if (one instanceof Promise) return one.then((it) => void shown.push(it))
    shown.push(one)
    return undefined
  })
  if (showing !== undefined) await showing
  return shown
}

function showToken(
  keys: TenantKeys,
  tenantId: string,
  token: FoundToken,
  grant: Grant,
  { now, evaluationContext, privacyShown: privacy }: Showing,
): ShownToken {
  const data = showData(keys, token, grant, { now, evaluationContext })
  const mask = maskOf(token)
  const wire = (): JsonObject =>
    renderToken(token, { tenantId, data, mask, privacy, deduplicated: false })
  return { data, wire }
}

/** Returns the part of the token's data that `grant` shows; undefined if it shows none, and then nothing is decrypted. */
export function showData(
  keys: TenantKeys,
  token: FoundToken,
  grant: Grant,
  { now, evaluationContext }: Pick<Showing, 'now' | 'evaluationContext'>,
): Json | undefined {
  if (!showsData(token, grant)) return undefined
  return shownData(token, openData(keys, token, now, grant), grant.transform, evaluationContext)
}

function unreadableToken(
  tenantId: string,
  token: FoundToken,
  { privacyShown: privacy }: Showing,
): ShownToken {
  const shown = { tenantId, data: undefined, mask: maskOf(token), privacy, deduplicated: false }
  return { data: undefined, wire: () => renderToken(token, { ...shown, unreadable: true }) }
}

/** Bounds the total work of the expressions in an answer of `tokens` tokens. */
export function readingEvaluationContext(random: Random, tokens: number): EvaluationContext {
  const workMax = EXPRESSION_WORK_CHARS_MAX + tokens * TOKEN_WORK_CHARS_MAX
  return { random, costBudget: new CostBudget(workMax, MASKS_SHOWN_CHARS_MAX) }
}
