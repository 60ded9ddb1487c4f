import { allowedDestinations } from '../../access/destinations.ts'
import type { Principal } from '../../base/access.ts'
import { PROXY_KEY_CHARS_MAX } from '../../base/limits.ts'
import type { StoredTenant } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import {
  hashProxyKey,
  openProxyConfiguration,
  type SealedProxyConfiguration,
} from './sealed-proxy-configuration.ts'

/** A configured proxy, ready to be invoked. */
export interface FoundProxy extends Pick<
  SealedProxyConfiguration,
  'destinationUrl' | 'applicationId' | 'requireAuth'
> {
  readonly id: string
  readonly tenant: StoredTenant
}

/**
 * Finds the current proxy with this key in any tenant; null if there is none.
 *
 * A caller with an API key may only invoke proxies of its own tenant: the handler must answer for any other as if it did
 * not exist. A caller without one is anonymousOf() the proxy, and only where `requireAuth` is false.
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
  // The row's hash was changed in the file, to invoke the proxy by an attacker's key.
  if (config.key !== key) return null
  const { destinationUrl, applicationId, requireAuth } = config
  return { id: proxy.id, tenant, destinationUrl, applicationId, requireAuth }
}

/**
 * Returns the principal of a caller without an API key. It has no permissions, so nothing is detokenized. In the audit log
 * the proxy stands for its callers.
 */
export function anonymousOf({ id, tenant }: FoundProxy): Principal {
  return {
    tenantId: tenant.id,
    plan: tenant.plan,
    settings: tenant.settings,
    applicationId: id,
    keyId: id,
    keys: [],
    type: 'public',
    permissions: [],
    rules: [],
    within: null,
    destinations: allowedDestinations(tenant, []),
    allowedOrigins: null,
  }
}
