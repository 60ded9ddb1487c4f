import { authorize, visibleContainers } from '../access/authorize.ts'
import type { RequestContext } from '../request/context.ts'
import { ok, type Answer } from '../request/response.ts'
import { renderPage } from '../request/pagination.ts'
import type { PageRequest } from '../ports/store.ts'
import type { World } from '../ports/world.ts'
import { parseSearch } from './search-query.ts'
import { ReadBudget } from './read-budget.ts'
import { readGranted } from './read-granted.ts'
import { readingEvaluationContext, showTokens } from './shown-tokens.ts'
import type { TokenSettings } from './token-settings.ts'

/**
 * Returns a page of the tokens the caller may search that match `query`, newest first.
 *
 * Throws `search_invalid`, `permission_missing`, `answer_too_large`.
 */
export async function searchTokens(
  world: Pick<World, 'clock' | 'log' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  { query, page }: { readonly query: string; readonly page: PageRequest },
  { privacyShown }: TokenSettings,
): Promise<Answer> {
  const permission = 'token:search'
  const keys = await world.keyring.open(context.tenantId)
  const where = parseSearch(query, { indexOf: (value) => keys.index(value), exact: false })
  const now = world.clock.now()
  const within = visibleContainers(context, permission)
  const { tokens, grants, total } = await readGranted(world, context, {
    find: async () => {
      const found = await world.store.tokens.list(context.tenantId, { where, within, now }, page)
      return { tokens: found.items, total: found.total }
    },
    authorize: (found) => found.map((it) => authorize(context, permission, it)),
    budget: new ReadBudget(context, { slots: false }),
  })
  const evaluationContext = readingEvaluationContext(world.random, tokens.length)
  const showing = { grants, now, evaluationContext, privacyShown }
  const items = await showTokens(world, context, tokens, showing)
  return ok(renderPage({ total, items }, page, (it) => it.wire()))
}
