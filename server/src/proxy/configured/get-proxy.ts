import { authorize } from '../../access/authorize.ts'
import type { RequestContext } from '../../request/context.ts'
import { isUuid } from '../../base/id.ts'
import type { JsonObject } from '../../base/json.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { StoredProxy } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { openProxyConfiguration } from './sealed-proxy-configuration.ts'
import { renderProxy } from './wire.ts'

/** Throws `permission_missing`, `proxy_not_found`. */
export async function readProxy(
  world: Pick<World, 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<JsonObject> {
  authorize(context, 'proxy:read')
  const proxy = await getProxy(world, context, id)
  const keys = await world.keyring.open(context.tenantId)
  return renderProxy(context.tenantId, proxy, openProxyConfiguration(keys, proxy))
}

/**
 * Returns the proxy with this id in the caller's tenant. Throws the same `proxy_not_found` if it does not exist, belongs to
 * another tenant, or the id is malformed.
 */
export async function getProxy(
  world: Pick<World, 'store'>,
  context: RequestContext,
  id: string,
): Promise<StoredProxy> {
  const it = isUuid(id) ? await world.store.proxies.find(context.tenantId, id) : null
  if (it === null) throw new ServiceError('proxy_not_found')
  return it
}
