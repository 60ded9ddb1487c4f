/**
 * Seals and opens the configuration of a proxy.
 *
 * All of it is sealed. Its key would let a thief of the file invoke a proxy without authentication; a destination may carry
 * a credential in its path, and a configuration is meant to carry some; and sealed members, such as whether
 * authentication is required, cannot be changed in the file. Decision 0027.
 */
import { hash } from 'node:crypto'
import { openValue } from '../../request/open-value.ts'
import {
  openSecrets,
  sealedSecrets,
  type SeparatedConfiguration,
} from '../../definitions/secret-configuration.ts'
import { Sensitive } from '../../base/sensitive.ts'
import type { TenantKeys } from '../../ports/keyring.ts'
import { sealContextOf } from '../../ports/store/entities.ts'
import type { StoredProxy } from '../../ports/stored.ts'

export interface SealedProxyConfiguration extends SeparatedConfiguration {
  /** The key that invokes it. */
  readonly key: string
  readonly destinationUrl: string
  /** The application it acts for, which may have been deleted; null for none. */
  readonly applicationId: string | null
  /** Whether invoking it requires an API key. */
  readonly requireAuth: boolean
}

export function sealProxyConfiguration(
  keys: TenantKeys,
  id: string,
  { secrets, ...config }: SealedProxyConfiguration,
): Uint8Array {
  const text = JSON.stringify({ ...config, ...sealedSecrets(secrets) })
  return keys.seal(sealContextOf('proxy', 'terms', id), new Sensitive(text))
}

/** Throws `value_unreadable` if the proxy is damaged or was tampered with. */
export function openProxyConfiguration(
  keys: TenantKeys,
  { id, terms }: Pick<StoredProxy, 'id' | 'terms'>,
): SealedProxyConfiguration {
  const name = { kind: 'proxy_configuration', id } as const
  const config = JSON.parse(
    openValue(keys, sealContextOf('proxy', 'terms', id), terms, name).reveal(),
  ) as Omit<SealedProxyConfiguration, 'secrets'> & { readonly secrets?: Record<string, string> }
  return { ...config, secrets: openSecrets(config.secrets) }
}

/** Returns StoredProxy.hash, by which a proxy is found. */
export function hashProxyKey(key: string): Uint8Array {
  return hash('sha256', key, 'buffer')
}
