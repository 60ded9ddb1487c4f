/**
 * Reads the data of tokens in this order: find them without long data, authorize their use, read the data of those it shows, and
 * count only that. So neither a refusal nor a limit depends on data that the caller may not see. Decision 0078.
 */
import type { Grant } from '../access/authorize.ts'
import type { RequestContext } from '../request/context.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import type { ReadBudget, WantedToken } from './read-budget.ts'
import { maskOf } from './wire.ts'

/** Tokens whose use is authorized. */
export interface GrantedTokens {
  /** Each with all of its data if its grant shows any, and without otherwise. */
  readonly tokens: readonly FoundToken[]
  /** One per token. */
  readonly grants: readonly Grant[]
}

export interface GrantedRead<Found> {
  readonly find: () => Promise<Found>
  /** Returns a grant per token, or throws. */
  readonly authorize: (tokens: readonly FoundToken[]) => readonly Grant[]
  readonly budget: ReadBudget
  /** Whether the data is needed even if the caller sees none of it. */
  readonly always?: boolean
}

/**
 * Returns what `find` found, its tokens with the data that their grants show.
 *
 * If a token changed after it was authorized, it all begins anew. Throws what `find`, `authorize` and the budget throw.
 */
export async function readGranted<Found extends { readonly tokens: readonly FoundToken[] }>(
  { store }: Pick<World, 'store'>,
  context: RequestContext,
  { find, authorize, budget, always = false }: GrantedRead<Found>,
): Promise<Omit<Found, 'tokens'> & GrantedTokens> {
  const { decisions } = context
  for (let attempt = 1; attempt <= READ_ATTEMPTS_MAX; attempt++) {
    const first = decisions.length
    const found = await find()
    const grants = authorize(found.tokens)
    const tokens = await budget.read(
      { store },
      context,
      withoutHidden(found.tokens, grants, always),
    )
    if (tokens !== null) return { ...found, tokens, grants }
    // Nothing was shown because of these decisions.
    decisions.length = first
  }
  throw new Error('Cannot read tokens: others kept changing them first')
}

/** Each failed attempt lost to another request that succeeded; this many in a row do not happen by chance. */
export const READ_ATTEMPTS_MAX = 100

/** Whether `grant` shows any of the token's data. */
export function showsData(token: FoundToken, { transform }: Grant): boolean {
  return transform === 'reveal' || (transform === 'mask' && maskOf(token) !== null)
}

function withoutHidden(
  tokens: readonly FoundToken[],
  grants: readonly Grant[],
  always: boolean,
): WantedToken[] {
  return tokens.map((token, at) => {
    const wanted = always || showsData(token, grants[at]!)
    return { token: wanted || token.data === null ? token : { ...token, data: null }, wanted }
  })
}
