import { authorize, visibleContainers } from '../access/authorize.ts'
import type { RequestContext } from '../request/context.ts'
import { ok, type Answer } from '../request/response.ts'
import { renderPage } from '../request/pagination.ts'
import type { Page, PageRequest } from '../ports/store.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { TokenQuery } from '../ports/token-query.ts'
import type { World } from '../ports/world.ts'
import { ReadBudget } from './read-budget.ts'
import { readGranted } from './read-granted.ts'
import { readingEvaluationContext, showTokens } from './shown-tokens.ts'
import type { TokenFilter } from './token-filter.ts'
import type { TokenSettings } from './token-settings.ts'

/**
 * Returns a page of the tokens the caller may read, newest first or in the order of the requested ids. Each is shown
 * according to its rule.
 *
 * Ids that do not exist or that the caller may not read are omitted. Throws `permission_missing`, `answer_too_large`.
 */
export async function listTokens(
  world: Pick<World, 'clock' | 'log' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  { filter, page }: { readonly filter: TokenFilter; readonly page: PageRequest },
  { privacyShown }: TokenSettings,
): Promise<Answer> {
  const permission = 'token:read'
  const now = world.clock.now()
  const query: TokenQuery = {
    where: filter.where,
    within: visibleContainers(context, permission),
    now,
  }
  const { tokens, grants, total } = await readGranted(world, context, {
    find: async () => {
      const found =
        filter.ids === null
          ? await world.store.tokens.list(context.tenantId, query, page)
          : await inOrder(world, context, { ids: filter.ids, query, page })
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

async function inOrder(
  world: Pick<World, 'store'>,
  context: RequestContext,
  {
    ids,
    query,
    page: { page, size },
  }: { readonly ids: readonly string[]; readonly query: TokenQuery; readonly page: PageRequest },
): Promise<Page<FoundToken>> {
  const all = { page: 1, size: ids.length }
  const { total, items } = await world.store.tokens.list(context.tenantId, query, all)
  const byId = new Map(items.map((it) => [it.id, it]))
  const ordered = ids.flatMap((id) => byId.get(id) ?? [])
  return { total, items: ordered.slice((page - 1) * size, page * size) }
}
