/**
 * Seals and opens the code and configuration of a reactor.
 *
 * All of it is sealed: a configuration holds credentials, and code that could be changed in the file would let anyone with
 * write access run code on the data. Decision 0029.
 */
import { openValue } from '../request/open-value.ts'
import {
  openSecrets,
  sealedSecrets,
  type SeparatedConfiguration,
} from '../definitions/secret-configuration.ts'
import { Sensitive } from '../base/sensitive.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import { sealContextOf } from '../ports/store/entities.ts'
import type { StoredReactor } from '../ports/stored.ts'

export interface SealedReactorConfiguration extends SeparatedConfiguration {
  /** As sent: it is compiled where it is run. */
  readonly code: string
  /** The application it acts for, which may have been deleted; null for none. */
  readonly applicationId: string | null
}

export function sealReactorConfiguration(
  keys: TenantKeys,
  id: string,
  { secrets, ...config }: SealedReactorConfiguration,
): Uint8Array {
  const text = JSON.stringify({ ...config, ...sealedSecrets(secrets) })
  return keys.seal(sealContextOf('reactor', 'terms', id), new Sensitive(text))
}

/** Throws `value_unreadable` if the reactor is damaged or was tampered with. */
export function openReactorConfiguration(
  keys: TenantKeys,
  { id, terms }: Pick<StoredReactor, 'id' | 'terms'>,
): SealedReactorConfiguration {
  const name = { kind: 'reactor_configuration', id } as const
  const config = JSON.parse(
    openValue(keys, sealContextOf('reactor', 'terms', id), terms, name).reveal(),
  ) as Omit<SealedReactorConfiguration, 'secrets'> & { readonly secrets?: Record<string, string> }
  return { ...config, secrets: openSecrets(config.secrets) }
}
