import { authorize } from '../access/authorize.ts'
import { renderDefinitions } from '../definitions/render-definitions.ts'
import type { RequestContext } from '../request/context.ts'
import { uuidsIn } from '../base/id.ts'
import type { JsonObject } from '../base/json.ts'
import type { DefinitionFilter, Page, PageRequest } from '../ports/store.ts'
import type { World } from '../ports/world.ts'
import { openReactor } from './get-reactor.ts'
import { renderReactor } from './wire.ts'

/**
 * Returns one page of the tenant's reactors, newest first.
 *
 * Unknown and malformed ids are omitted. Throws `permission_missing`.
 */
export async function listReactors(
  world: Pick<World, 'clock' | 'log' | 'keyring' | 'store'>,
  context: RequestContext,
  { filter, page }: { readonly filter: DefinitionFilter; readonly page: PageRequest },
): Promise<Page<JsonObject>> {
  authorize(context, 'reactor:read')
  const ids = filter.ids && uuidsIn(filter.ids)
  if (ids?.length === 0) return { total: 0, items: [] }
  const asked = ids === undefined ? filter : { ...filter, ids }
  const { total, items } = await world.store.rows('reactor').list(context.tenantId, asked, page)
  const rendered = await renderDefinitions(world, context.tenantId, items, async (it) =>
    renderReactor(context.tenantId, await openReactor(world, context, it)),
  )
  return { total, items: rendered }
}
