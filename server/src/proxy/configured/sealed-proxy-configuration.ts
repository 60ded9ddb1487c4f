/**
 * What a configured proxy does, into an envelope and back.
 *
 * All of it is sealed. Its key would let whoever steals the file call a proxy that asks nobody who they are; a
 * destination may carry a credential in its path, and a configuration is there to carry some; and what is
 * sealed together cannot be changed in the file, such as whether it asks. Decision 0027.
 */
import { hash } from 'node:crypto'
import { Sensitive } from '../../base/sensitive.ts'
import type { SealContext, TenantKeys } from '../../ports/keyring.ts'
import type { StoredProxy } from '../../ports/stored.ts'

export interface SealedProxyConfiguration {
  /** By which it is invoked. */
  readonly key: string
  readonly destinationUrl: string
  /** The application it acts for, which may be gone by now; null for none. */
  readonly applicationId: string | null
  readonly configuration: Readonly<Record<string, string>>
  /** Whether whoever invokes it needs an API key. */
  readonly requireAuth: boolean
}

export function sealProxyConfiguration(
  keys: TenantKeys,
  id: string,
  config: SealedProxyConfiguration,
): Uint8Array {
  return keys.seal(sealContextOf(id), new Sensitive(JSON.stringify(config)))
}

/** Throws if the proxy was tampered with. */
export function openProxyConfiguration(
  keys: TenantKeys,
  { id, terms }: Pick<StoredProxy, 'id' | 'terms'>,
): SealedProxyConfiguration {
  return JSON.parse(keys.open(sealContextOf(id), terms).reveal()) as SealedProxyConfiguration
}

/** By which a proxy is found, StoredProxy.hash. */
export function hashProxyKey(key: string): Uint8Array {
  return hash('sha256', key, 'buffer')
}

function sealContextOf(id: string): SealContext {
  return { id, part: 'terms', type: 'proxy', containers: [] }
}
