import { authorize } from '../../access/authorize.ts'
import { renderDefinitions } from '../../definitions/render-definitions.ts'
import type { RequestContext } from '../../request/context.ts'
import { uuidsIn } from '../../base/id.ts'
import type { JsonObject } from '../../base/json.ts'
import type { DefinitionFilter, Page, PageRequest } from '../../ports/store.ts'
import type { World } from '../../ports/world.ts'
import { openProxyConfiguration } from './sealed-proxy-configuration.ts'
import { renderProxy } from './wire.ts'

/**
 * Returns one page of the tenant's proxies, newest first.
 *
 * Unknown and malformed ids are omitted. Throws `permission_missing`.
 */
export async function listProxies(
  world: Pick<World, 'log' | 'keyring' | 'store'>,
  context: RequestContext,
  { filter, page }: { readonly filter: DefinitionFilter; readonly page: PageRequest },
): Promise<Page<JsonObject>> {
  authorize(context, 'proxy:read')
  const ids = filter.ids && uuidsIn(filter.ids)
  if (ids?.length === 0) return { total: 0, items: [] }
  const asked = ids === undefined ? filter : { ...filter, ids }
  const found = await world.store.proxies.list(context.tenantId, asked, page)
  const keys = await world.keyring.open(context.tenantId)
  const items = await renderDefinitions(world, context.tenantId, found.items, async (it) =>
    renderProxy(context.tenantId, it, openProxyConfiguration(keys, it)),
  )
  return { total: found.total, items }
}
