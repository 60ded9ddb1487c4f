import { hash } from 'node:crypto'
import type { InProcessCaller, Principal } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Change } from '../ports/change.ts'
import { descriptionOf } from '../ports/store/entities.ts'
import type { EntityChange } from '../ports/store/entity-change.ts'
import type { Store } from '../ports/store.ts'
import { withCommit } from '../ports/with-commit.ts'
import type { World } from '../ports/world.ts'
import { apiKeyLooksRight, hashApiKey, isSessionKey } from './api-key.ts'
import { narrowedTo } from './destinations.ts'
import { EphemeralKeys } from './ephemeral-keys.ts'
import { IdentityCache } from './identity-cache.ts'
import {
  resolveApplicationKey,
  resolveEphemeralKey,
  resolveSessionKey,
} from './resolve-principal.ts'

/**
 * Authentication: finds the principal of an API key.
 *
 * Every request needs this, so a result is cached for a second (decision 0006), counted from the start of the look-up: a change
 * by another process takes effect within that second, a change through `store` at once. A failure is never cached, and a
 * malformed key is refused without a look-up. Keys are held as hashes only: as text, which takes a third of the time that bytes
 * take.
 *
 * A session key is looked up for every request until the session has its rights, so it has them from the next request on without
 * invalidation. An ephemeral key is looked up for every request, since it ends with its run. It is accepted only on in-process
 * connections; over the network it is unknown.
 */
export interface Identities {
  /**
   * Returns the principal of `apiKey`: at once if cached, else after one look-up.
   *
   * `inProcessCaller` is the code, run by the service itself, that calls, and the destinations it may send to: the principal it
   * acts as is limited to them. Null for callers over the network.
   *
   * Throws or rejects with `key_missing` or `key_unknown`; the latter also if the application expired, and for an ephemeral key
   * that does not come from the tenant's own code.
   */
  readonly authenticate: (
    apiKey: string | undefined,
    inProcessCaller?: InProcessCaller | null,
  ) => Principal | Promise<Principal>

  /** The world's store; it invalidates every identity as soon as a commit changes applications. */
  readonly store: Store
}

export function createIdentities(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  ephemeralKeys: Pick<EphemeralKeys, 'find'> = new EphemeralKeys(),
): Identities {
  const cache = new IdentityCache(world.clock)
  return { authenticate, store: invalidatingIdentities(world.store, () => cache.invalidate()) }

  function authenticate(
    apiKey: string | undefined,
    inProcessCaller: InProcessCaller | null = null,
  ): Principal | Promise<Principal> {
    if (apiKey === undefined || apiKey === '') throw new ServiceError('key_missing')
    const name = hash('sha256', apiKey, 'base64')
    const found = cache.get(name) ?? resolve(apiKey, name, inProcessCaller)
    if (inProcessCaller === null) return found
    return found instanceof Promise
      ? found.then((it) => narrowedTo(it, inProcessCaller))
      : narrowedTo(found, inProcessCaller)
  }

  function resolve(
    apiKey: string,
    name: string,
    inProcessCaller: InProcessCaller | null,
  ): Promise<Principal> {
    if (!apiKeyLooksRight(apiKey)) throw new ServiceError('key_unknown')
    const keyHash = hashApiKey(apiKey)
    if (isSessionKey(apiKey)) return cache.lookUp(name, () => resolveSessionKey(world, keyHash))
    const subject = ephemeralKeys.find(name)
    if (subject === undefined) {
      return cache.lookUpShared(name, () => resolveApplicationKey(world, keyHash))
    }
    if (inProcessCaller?.tenantId !== subject.tenantId) throw new ServiceError('key_unknown')
    return cache.lookUp(name, () => resolveEphemeralKey(world, ephemeralKeys, name, subject))
  }
}

/** Clears the identity cache after every commit that may change who holds a key. */
function invalidatingIdentities(store: Store, invalidate: () => void): Store {
  return withCommit(store, (tenantId, changes) => {
    const done = store.commit(tenantId, changes)
    // Also after a rejection: the change may have been made.
    return changes.some(changesIdentity) ? done.finally(invalidate) : done
  })
}

function changesIdentity(change: Change): boolean {
  if (!('entity' in change)) return CHANGES_IDENTITY[change.kind]
  return change.kind !== 'insert' && descriptionOf(change.entity).affectsAuthentication === true
}

/** Complete, so that a new kind of change has to say whether it affects identities. */
const CHANGES_IDENTITY: Readonly<Record<Exclude<Change['kind'], EntityChange['kind']>, boolean>> = {
  install: false,
  'insert-tenant': false,
  'put-access-state': false,
  'leave-access-state': false,
  'insert-tokens': false,
  'remember-answer': false,
  'update-token': false,
  'delete-token': false,
  'open-transaction': false,
  enlist: false,
  'end-transaction': false,
  'append-audit-events': false,
  'park-audit-events': false,
  'end-parked-audit-events': false,
  'trim-audit-log': false,
  'put-audit-checkpoint': false,
  'delete-tenant': true,
  'clear-tenant': false,
  // A session without rights is never cached.
  'authorize-session': false,
  'prove-session': false,
  'require-root-key': false,
  'renew-envelopes': false,
  'retire-data-keys': false,
  'destroy-tenant-keys': false,
  'replace-root-key': false,
  'put-notice': false,
  'claim-job': false,
}
