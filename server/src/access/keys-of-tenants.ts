import { ServiceError } from '../base/service-error.ts'
import type { Keyring } from '../ports/keyring.ts'
import type { World } from '../ports/world.ts'

/**
 * Wraps the keyring so that a request in progress when its tenant was deleted is refused like the next one, with `key_unknown`:
 * the missing encryption keys are no fault.
 */
export function keysOfTenants({ keyring, store }: Pick<World, 'keyring' | 'store'>): Keyring {
  return {
    create: (tenantId, now) => keyring.create(tenantId, now),
    forget: (tenantId) => keyring.forget(tenantId),
    open: (tenantId) => {
      const keys = keyring.open(tenantId)
      return keys instanceof Promise ? keys.catch((cause) => refuse(tenantId, cause)) : keys
    },
  }

  async function refuse(tenantId: string, cause: unknown): Promise<never> {
    if ((await store.tenants.find(tenantId)) !== null) throw cause
    throw new ServiceError('key_unknown')
  }
}
