import type { Change } from '../ports/change.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { StoredDefinition } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { auditEventsOf } from '../request/audit-events.ts'
import { findNamedTenant } from '../access/applications/named-tenant.ts'
import { markSecret, type SeparatedConfiguration } from './secret-configuration.ts'

/** Why nothing was marked, in one sentence for the operator. Nothing was changed. */
export class ProtectionError extends Error {
  override readonly name = 'ProtectionError'
}

/** What the operator names: the value `key` in the configuration of a reactor or a proxy. */
export interface ProtectionRequest {
  /** The id of a tenant, or its name; null if the operator named none. */
  readonly tenant: string | null
  readonly entity: 'reactor' | 'proxy'
  readonly id: string
  readonly key: string
}

/** How the definitions of one kind are read and written. */
export interface DefinitionAccess<Stored extends StoredDefinition, Config> {
  readonly find: (tenantId: string, id: string) => Promise<Stored | null>
  readonly open: (keys: TenantKeys, stored: Stored) => Config
  readonly seal: (keys: TenantKeys, id: string, config: Config) => Uint8Array
  readonly update: (stored: Stored) => Change
}

/**
 * Marks a stored string as secret, so that no answer shows it from now on. Returns whether it was not one before.
 *
 * For clients that can send only strings, and so cannot mark it themselves. Like recoverManagementKey(), a use case without a
 * caller, which no endpoint calls. The value is neither read by the operator nor sent, and a concurrent update is never undone.
 * The same commit adds the change to the tenant's audit log. Rejects with ProtectionError. Decision 0077.
 */
export async function protectValue<
  Stored extends StoredDefinition,
  Config extends SeparatedConfiguration,
>(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  { find, open, seal, update }: DefinitionAccess<Stored, Config>,
  { tenant: named, entity, id, key }: ProtectionRequest,
): Promise<boolean> {
  const tenant = await findNamedTenant(world.store, named)
  if (typeof tenant === 'string') throw new ProtectionError(tenant)
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const stored = await find(tenant.id, id)
    if (stored === null) {
      throw new ProtectionError(`There is no ${entity} ${id} in tenant "${tenant.name}".`)
    }
    const keys = await world.keyring.open(tenant.id)
    const config = open(keys, stored)
    const marked = markSecret(config, key)
    if (marked === 'secret already') return false
    if (typeof marked === 'string') throw new ProtectionError(explain(marked, entity, id, key))
    // Not a change by an application: the author and time of the last one stay.
    const terms = seal(keys, id, { ...config, ...marked })
    const change = update({ ...stored, terms, revision: stored.revision + 1 })
    const actor = { applicationId: tenant.id, keyId: tenant.id, traceId: PROTECTION_TRACE }
    const events = auditEventsOf(actor, world.clock.now(), [], [change])
    const conflict = await world.store.commit(tenant.id, [
      change,
      { kind: 'append-audit-events', events },
    ])
    if (conflict === null) return true
  }
  throw new ProtectionError(`The ${entity} ${id} is being changed: run the command again.`)
}

function explain(
  reason: 'absent' | 'not a string',
  entity: string,
  id: string,
  key: string,
): string {
  if (reason === 'absent') {
    return `The configuration of ${entity} ${id} has no "${key}": names are case-sensitive.`
  }
  return (
    `"${key}" in the configuration of ${entity} ${id} is not a string, and only a string can be a secret: ` +
    'its code would receive another value.'
  )
}

/** Replaces a request's trace id in the audit log. */
const PROTECTION_TRACE = 'configuration-protect'

/** Each attempt loses to a request that won. */
const ATTEMPTS_MAX = 100
