import type { Principal } from '../../base/access.ts'
import { PROXY_KEY_CHARS_MAX } from '../../base/limits.ts'
import type { StoredTenant } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import {
  hashProxyKey,
  openProxyConfiguration,
  type SealedProxyConfiguration,
} from './sealed-proxy-configuration.ts'

/** A configured proxy, as it is to be invoked. */
export interface FoundProxy extends Pick<
  SealedProxyConfiguration,
  'destinationUrl' | 'applicationId' | 'requireAuth'
> {
  readonly id: string
  readonly tenant: StoredTenant
}

/**
 * Finds the proxy that goes by this key, in whatever tenant, as it is now; null when there is none.
 *
 * Whoever calls with an API key may invoke those of its own tenant only: one of another tenant is to be answered
 * for as if there were none. Without an API key the caller is anonymousOf() the proxy, and only
 * where `requireAuth` is false.
 */
export async function findProxy(
  world: Pick<World, 'keyring' | 'store'>,
  key: string,
): Promise<FoundProxy | null> {
  if (key === '' || key.length > PROXY_KEY_CHARS_MAX) return null
  const holder = await world.store.proxies.findByKeyHash(hashProxyKey(key))
  if (holder === null) return null
  const { tenant, proxy } = holder
  const config = openProxyConfiguration(await world.keyring.open(tenant.id), proxy)
  // Somebody gave the row another hash, to call it by a key of their own.
  if (config.key !== key) return null
  const { destinationUrl, applicationId, requireAuth } = config
  return { id: proxy.id, tenant, destinationUrl, applicationId, requireAuth }
}

/**
 * Returns who calls a proxy without an API key: nobody with any right, so that nothing is detokenized. In the
 * audit log the proxy stands for its callers.
 */
export function anonymousOf({ id, tenant }: FoundProxy): Principal {
  return {
    tenantId: tenant.id,
    plan: tenant.plan,
    settings: tenant.settings,
    applicationId: id,
    keyId: id,
    type: 'public',
    permissions: [],
    rules: [],
    within: null,
    destinations: null,
  }
}
