import { idOf, isUuid } from '../../base/id.ts'
import { APPLICATION_KEYS_MAX } from '../../base/limits.ts'
import type { KeyProvider } from '../../ports/key-provider.ts'
import type { Change } from '../../ports/change.ts'
import type { StoredApplication, StoredTenant } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { auditEventsOf } from '../../request/audit-events.ts'
import { commitAccess } from '../commit-access.ts'
import { issueKey, type IssuedKey } from './issue-key.ts'
import { findNamedTenant } from './named-tenant.ts'
import { permissionsOf } from '../permissions.ts'
import { checkRootKey } from '../root-key-check.ts'

/** Why no key was created, in one sentence for the operator. Nothing was changed. */
export class RecoveryError extends Error {
  override readonly name = 'RecoveryError'
}

export interface RecoveryRequest {
  /** The id of a tenant, or its name; null if the operator named none. */
  readonly tenant: string | null
  /** The id of the management application to add the key to; null for a new one. */
  readonly applicationId: string | null
}

export interface RecoveredKey {
  readonly tenantId: string
  readonly applicationId: string
  /** A management key. Shown once, kept nowhere. */
  readonly apiKey: string
}

type RecoveryWorld = Pick<World, 'clock' | 'keyring' | 'random' | 'store'>

/**
 * Creates a management key for a tenant that has lost its own: for a new application with every management permission, so that
 * nothing else changes, or for an application that the operator names.
 *
 * Like setUp(), a use case without a caller, which no endpoint calls: the operator controls the machine, the data and the root
 * key. The same commit adds it to the tenant's audit log, and leaves a notice for the service's log. Rejects with
 * RecoveryError, or with SetUpError if the root key is not the store's. Decision 0073.
 */
export async function recoverManagementKey(
  world: RecoveryWorld,
  keyProvider: KeyProvider,
  request: RecoveryRequest,
): Promise<RecoveredKey> {
  for (;;) {
    await checkRootKey(world.store, keyProvider)
    const tenant = await findTenant(world, request.tenant)
    // Proves that the root key also opens the tenant's data.
    await world.keyring.open(tenant.id)
    const { application, issued, changes } = await prepareKey(world, tenant, request.applicationId)
    const conflict = await commitAccess(world, tenant.id, [
      { kind: 'require-root-key', id: keyProvider.id },
      ...changes,
    ])
    if (conflict === null) {
      return { tenantId: tenant.id, applicationId: application.id, apiKey: issued.key }
    }
    // The root key was replaced, or the application deleted: look again.
    if (conflict.kind !== 'keys-changed' && conflict.kind !== 'absent') {
      throw new Error(`Cannot create a key: ${conflict.kind}`)
    }
  }
}

async function findTenant({ store }: RecoveryWorld, named: string | null): Promise<StoredTenant> {
  const found = await findNamedTenant(store, named)
  if (typeof found === 'string') throw new RecoveryError(found)
  return found
}

interface PreparedKey {
  readonly application: StoredApplication
  readonly issued: IssuedKey
  readonly changes: readonly Change[]
}

async function prepareKey(
  world: RecoveryWorld,
  tenant: StoredTenant,
  applicationId: string | null,
): Promise<PreparedKey> {
  const now = world.clock.now()
  const application =
    applicationId === null
      ? newApplication(world, now)
      : await findApplication(world, tenant, applicationId, now)
  const version = await nextVersion(world, tenant.id, application.id)
  const issued = issueKey(world.random, application, { version, by: application.id, at: now })
  const made: Change[] = [
    ...(applicationId === null
      ? [{ kind: 'insert', entity: 'application', row: application } as const]
      : []),
    { kind: 'insert', entity: 'application_key', row: issued.stored },
  ]
  const keyId = issued.stored.id
  const actor = { applicationId: application.id, keyId, traceId: RECOVERY_TRACE }
  const text = renderRecoveryNotice({ tenant: tenant.id, application: application.id, key: keyId })
  const changes: Change[] = [
    ...made,
    { kind: 'put-notice', id: keyId, notice: { text, at: now } },
    { kind: 'append-audit-events', events: auditEventsOf(actor, now, [], made) },
  ]
  return { application, issued, changes }
}

function newApplication(world: Pick<World, 'random'>, now: number): StoredApplication {
  const id = idOf(now, world.random.bytes(10))
  return {
    id,
    name: 'Recovered management',
    type: 'management',
    permissions: permissionsOf('management'),
    rules: [],
    destinations: null,
    allowedOrigins: null,
    expiresAt: null,
    createdBy: id,
    createdAt: now,
    modifiedBy: null,
    modifiedAt: null,
  }
}

async function findApplication(
  { store }: RecoveryWorld,
  tenant: StoredTenant,
  id: string,
  now: number,
): Promise<StoredApplication> {
  const found = isUuid(id) ? await store.applications.find(tenant.id, id) : null
  const refuse = (what: string): never => {
    throw new RecoveryError(
      `Cannot add a key to application ${id} of tenant "${tenant.name}": ${what}; omit --application to create a new one.`,
    )
  }
  if (found === null) return refuse('there is no such application')
  if (found.type !== 'management') return refuse(`it is of type ${found.type}, not management`)
  if (found.expiresAt !== null && found.expiresAt <= now) return refuse('it has expired')
  const keys = await store.applications.keys(tenant.id, id)
  if (keys.length >= APPLICATION_KEYS_MAX) return refuse(`it has ${keys.length} keys already`)
  return found
}

async function nextVersion({ store }: RecoveryWorld, tenantId: string, id: string) {
  const keys = await store.applications.keys(tenantId, id)
  return Math.max(0, ...keys.map((it) => it.version)) + 1
}

/** The ids in the notice that a recovery leaves for the service's log. */
export interface RecoveryNotice {
  readonly tenant: string
  readonly application: string
  readonly key: string
}

function renderRecoveryNotice({ tenant, application, key }: RecoveryNotice): string {
  return JSON.stringify({ kind: RECOVERY, tenant, application, key })
}

/** Returns null for any other notice. Checks the ids, which are logged. */
export function parseRecoveryNotice(text: string): RecoveryNotice | null {
  let notice: Partial<Record<string, unknown>>
  try {
    notice = Object(JSON.parse(text))
  } catch {
    return null
  }
  const { kind, tenant, application, key } = notice
  if (kind !== RECOVERY) return null
  const isId = (it: unknown): it is string => typeof it === 'string' && isUuid(it)
  return isId(tenant) && isId(application) && isId(key) ? { tenant, application, key } : null
}

const RECOVERY = 'management_key_recovered'

/** Replaces a request's trace id in the audit log. */
const RECOVERY_TRACE = 'key-recovery'
