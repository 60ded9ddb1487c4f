import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { InProcessCaller, KeyReference, Principal, Rights } from '../base/access.ts'
import { IDENTITY_CACHE_ENTRIES_MAX, IDENTITY_CACHE_MS } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Change } from '../ports/change.ts'
import { descriptionOf } from '../ports/store/entities.ts'
import type { EntityChange } from '../ports/store/entity-change.ts'
import type { Store } from '../ports/store.ts'
import type { KeyHolder, SessionHolder, StoredApplication, StoredSession } from '../ports/stored.ts'
import { withCommit } from '../ports/with-commit.ts'
import type { World } from '../ports/world.ts'
import { apiKeyLooksRight, hashApiKey, isSessionKey } from './api-key.ts'
import { allowedDestinations, narrowedTo } from './destinations.ts'
import { isAsWritten } from './is-as-written.ts'
import { EphemeralKeys, type EphemeralKeySubject } from './ephemeral-keys.ts'

/**
 * Authentication: finds the principal of an API key.
 *
 * Every request needs this, so a result is cached for a second (decision 0006), counted from the start of the look-up: a change
 * by another process takes effect within that second, a change through `store` at once. A failure is never cached, and a
 * malformed key is refused without a look-up. Keys are held as hashes only: as text, which takes a third of the time that bytes
 * take.
 *
 * A session that the database holds in another form than the service wrote it is unknown.
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
  const known = new LRUCache<string, KnownPrincipal>({ max: IDENTITY_CACHE_ENTRIES_MAX })
  const asked = new Map<string, Promise<Principal>>()
  let era = 0

  return { authenticate, store: invalidatingIdentities(world.store, invalidate) }

  function authenticate(
    apiKey: string | undefined,
    inProcessCaller: InProcessCaller | null = null,
  ): Principal | Promise<Principal> {
    const found = holderOf(apiKey, inProcessCaller)
    if (inProcessCaller === null) return found
    return found instanceof Promise
      ? found.then((it) => narrowedTo(it, inProcessCaller))
      : narrowedTo(found, inProcessCaller)
  }

  function holderOf(
    apiKey: string | undefined,
    inProcessCaller: InProcessCaller | null,
  ): Principal | Promise<Principal> {
    if (apiKey === undefined || apiKey === '') throw new ServiceError('key_missing')
    const name = hash('sha256', apiKey, 'base64')
    const it = known.get(name)
    if (it !== undefined && world.clock.elapsed() < it.until) return it.principal
    if (!apiKeyLooksRight(apiKey)) throw new ServiceError('key_unknown')
    if (isSessionKey(apiKey)) return lookUp(name, () => findSession(hashApiKey(apiKey)))
    const subject = ephemeralKeys.find(name)
    if (subject !== undefined) {
      if (inProcessCaller?.tenantId !== subject.tenantId) throw new ServiceError('key_unknown')
      return lookUp(name, () => findEphemeralHolder(name, subject))
    }
    return asked.get(name) ?? lookUpShared(name, hashApiKey(apiKey))
  }

  /** Requests that arrive during a look-up share its answer. */
  function lookUpShared(name: string, keyHash: Uint8Array): Promise<Principal> {
    const answer = lookUp(name, () => findApplication(keyHash)).finally(() => {
      if (asked.get(name) === answer) asked.delete(name)
    })
    asked.set(name, answer)
    return answer
  }

  async function lookUp(
    name: string,
    find: () => Promise<FoundPrincipal | null>,
  ): Promise<Principal> {
    const askedIn = era
    const from = world.clock.elapsed()
    const found = await find()
    const livesMs = (found?.expiresAt ?? Infinity) - world.clock.now()
    if (found === null || livesMs <= 0) {
      known.delete(name)
      throw new ServiceError('key_unknown')
    }
    const { principal, lasting } = found
    const until = Math.min(from + IDENTITY_CACHE_MS, world.clock.elapsed() + livesMs)
    // An answer to a look-up that began before a change may be stale: it serves the requests that waited for it and is not
    // cached.
    if (askedIn === era && lasting) known.set(name, { principal, until })
    return principal
  }

  async function findApplication(keyHash: Uint8Array): Promise<FoundPrincipal | null> {
    const holder = await world.store.applications.findByKeyHash(keyHash)
    if (holder === null) return null
    const { expiresAt } = holder.application
    return { principal: principalOf(holder), expiresAt, lasting: true }
  }

  async function findEphemeralHolder(
    name: string,
    subject: EphemeralKeySubject,
  ): Promise<FoundPrincipal | null> {
    const { tenantId, applicationId, reactorId: keyId } = subject
    const [tenant, application] = await Promise.all([
      world.store.tenants.find(tenantId),
      world.store.applications.find(tenantId, applicationId),
    ])
    // It may have ended meanwhile.
    if (tenant === null || application === null || ephemeralKeys.find(name) === undefined)
      return null
    const principal: Principal = {
      ...principalOf({ tenant, application, keyId }),
      keys: [{ applicationId, keyId: null }],
      ephemeral: true,
    }
    return { principal, expiresAt: application.expiresAt, lasting: false }
  }

  async function findSession(keyHash: Uint8Array): Promise<FoundPrincipal | null> {
    const holder = await world.store.sessions.findByKeyHash(keyHash)
    if (holder === null) return null
    const { tenant, application, session, authorizer } = holder
    if (!(await isAsWritten(world, tenant.id, session))) return null
    const ends = [session.expiresAt, application.expiresAt, authorizer?.expiresAt ?? null]
    return {
      principal: principalOfSession(holder),
      expiresAt: Math.min(...ends.map((it) => it ?? Infinity)),
      lasting: authorizer !== null,
    }
  }

  function invalidate(): void {
    era++
    known.clear()
    asked.clear()
  }
}

interface FoundPrincipal {
  readonly principal: Principal
  /** Null for never. */
  readonly expiresAt: number | null
  /** Whether the result may be cached. */
  readonly lasting: boolean
}

interface KnownPrincipal {
  readonly principal: Principal
  /** In the clock's elapsed milliseconds. */
  readonly until: number
}

function principalOf({ tenant, application, keyId }: KeyHolder): Principal {
  return {
    tenantId: tenant.id,
    plan: tenant.plan,
    settings: tenant.settings,
    applicationId: application.id,
    keyId,
    keys: [{ applicationId: application.id, keyId }],
    ...rightsOf(application),
    within: null,
    destinations: allowedDestinations(tenant, [application]),
  }
}

/** Until it is authorized a session may do nothing; then it has the rights it was given, and never more than the grantor. */
function principalOfSession({
  tenant,
  application,
  session,
  authorizer,
}: SessionHolder): Principal {
  const { permissions, rules } = session.authorization ?? NO_RIGHTS
  return {
    tenantId: tenant.id,
    plan: tenant.plan,
    settings: tenant.settings,
    applicationId: application.id,
    keyId: session.id,
    keys: keysOfSession(session),
    type: 'session',
    permissions,
    rules: rules.toSorted((a, b) => a.priority - b.priority),
    within: authorizer === null ? NO_RIGHTS : rightsOf(authorizer),
    grantorId: authorizer?.id,
    destinations: allowedDestinations(
      tenant,
      authorizer === null ? [application] : [application, authorizer],
    ),
  }
}

/** Returns the key that opened the session, and the one that authorized it. */
function keysOfSession({ applicationId, keyId, authorization }: StoredSession): KeyReference[] {
  const opener = { applicationId, keyId }
  if (authorization === null) return [opener]
  return [opener, { applicationId: authorization.applicationId, keyId: authorization.keyId }]
}

export function rightsOf({ type, permissions, rules }: StoredApplication): Rights {
  return { type, permissions, rules: rules.toSorted((a, b) => a.priority - b.priority) }
}

const NO_RIGHTS: Rights = { type: 'session', permissions: [], rules: [] }

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
