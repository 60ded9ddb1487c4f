/** Resolves keys to principals: one function for each kind of key. None of them caches. */
import type { KeyReference, Principal, Rights } from '../base/access.ts'
import type { KeyHolder, SessionHolder, StoredApplication, StoredSession } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { allowedDestinations } from './destinations.ts'
import type { EphemeralKeys, EphemeralKeySubject } from './ephemeral-keys.ts'
import { isAsWritten } from './is-as-written.ts'

export interface FoundPrincipal {
  readonly principal: Principal
  /** Null for never. */
  readonly expiresAt: number | null
  /** Whether the result may be cached. */
  readonly lasting: boolean
}

/** Resolves the key of an application, by its hash. */
export async function resolveApplicationKey(
  { store }: Pick<World, 'store'>,
  keyHash: Uint8Array,
): Promise<FoundPrincipal | null> {
  const holder = await store.applications.findByKeyHash(keyHash)
  if (holder === null) return null
  const { expiresAt } = holder.application
  return { principal: principalOf(holder), expiresAt, lasting: true }
}

/** Resolves the key of a session, by its hash. A session that the database holds in another form than it was written is unknown. */
export async function resolveSessionKey(
  world: Pick<World, 'keyring' | 'log' | 'store'>,
  keyHash: Uint8Array,
): Promise<FoundPrincipal | null> {
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

/** Resolves an ephemeral key, whose hash in base64 is `name`. It may end during the look-up. */
export async function resolveEphemeralKey(
  { store }: Pick<World, 'store'>,
  ephemeralKeys: Pick<EphemeralKeys, 'find'>,
  name: string,
  { tenantId, applicationId, reactorId: keyId }: EphemeralKeySubject,
): Promise<FoundPrincipal | null> {
  const [tenant, application] = await Promise.all([
    store.tenants.find(tenantId),
    store.applications.find(tenantId, applicationId),
  ])
  if (tenant === null || application === null) return null
  if (ephemeralKeys.find(name) === undefined) return null
  const principal: Principal = {
    ...principalOf({ tenant, application, keyId }),
    keys: [{ applicationId, keyId: null }],
    ephemeral: true,
  }
  return { principal, expiresAt: application.expiresAt, lasting: false }
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
    allowedOrigins: application.allowedOrigins,
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
    allowedOrigins: application.allowedOrigins,
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
