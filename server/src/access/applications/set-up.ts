import { DEFAULT_TENANT_SETTINGS, type Plan } from '../../base/access.ts'
import { idOf } from '../../base/id.ts'
import { NAME_CHARS_MAX } from '../../base/limits.ts'
import type { KeyProvider } from '../../ports/key-provider.ts'
import {
  applicationKeyStatement,
  applicationStatement,
  changesAccess,
} from '../../ports/access-state.ts'
import { CHAIN_START, checkpointStatement, positionAfter } from '../../ports/audit-log.ts'
import type { Change } from '../../ports/change.ts'
import type { StoredApplication, StoredTenant } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { AccessSum } from '../access-sum.ts'
import { issueKey } from './issue-key.ts'
import { permissionsOf } from '../permissions.ts'
import { auditEventsOf } from '../../request/audit-events.ts'
import { checkRootKey, makeRootKeyCheck } from '../root-key-check.ts'
import { SetUpError } from '../set-up-error.ts'

export interface TenantSetUp {
  readonly tenantId: string
  readonly applicationId: string
  /** Key of a management application with every management permission. Shown once, kept nowhere. */
  readonly apiKey: string
}

/**
 * Creates a tenant: its encryption keys, one management application, that application's API key, its access state and the first
 * checkpoint of its audit log.
 *
 * The one use case without a caller: no key exists before it. Its operator controls the machine, the data and the root key
 * already; no endpoint leads here. The first tenant's commit also installs the root key, all or nothing.
 *
 * The application counts as its own creator, and the tenant's. Rejects with SetUpError if the name is taken or invalid or the
 * root key is not the store's.
 */
export async function setUp(
  world: Pick<World, 'clock' | 'keyring' | 'random' | 'store'>,
  keyProvider: KeyProvider,
  { name, plan }: { readonly name: string; readonly plan: Plan },
): Promise<TenantSetUp> {
  if (!NAME.test(name)) {
    throw new SetUpError(
      'name-invalid',
      `A tenant's name has 1 to ${NAME_CHARS_MAX} characters and no control characters among them.`,
    )
  }
  for (;;) {
    await checkRootKey(world.store, keyProvider)
    const first = (await world.store.tenants.rootKeyCheck()) === null
    const rootKey: Change = first
      ? { kind: 'install', rootKey: await makeRootKeyCheck(keyProvider) }
      : { kind: 'require-root-key', id: keyProvider.id }
    const { done, changes } = await prepareTenant(world, name, plan)
    const conflict = await world.store.commit(done.tenantId, [rootKey, ...changes])
    if (conflict === null) return done
    // Another process set the store up first, or replaced its root key: check the current one.
    if (conflict.kind === 'installed' || conflict.kind === 'keys-changed') continue
    throw new SetUpError(
      'name-taken',
      `There is a tenant named "${name}" already: nothing was changed.`,
    )
  }
}

async function prepareTenant(
  world: Pick<World, 'clock' | 'keyring' | 'random'>,
  name: string,
  plan: Plan,
): Promise<{ readonly done: TenantSetUp; readonly changes: readonly Change[] }> {
  const now = world.clock.now()
  const tenantId = idOf(now, world.random.bytes(10))
  const applicationId = idOf(now, world.random.bytes(10))
  const made = { createdBy: applicationId, createdAt: now, modifiedBy: null, modifiedAt: null }
  const tenant: StoredTenant = {
    id: tenantId,
    name,
    plan,
    settings: DEFAULT_TENANT_SETTINGS,
    ...made,
  }
  const application: StoredApplication = {
    id: applicationId,
    name: 'Management',
    type: 'management',
    permissions: permissionsOf('management'),
    rules: [],
    destinations: null,
    allowedOrigins: null,
    expiresAt: null,
    ...made,
  }
  const { key, stored } = issueKey(world.random, application, {
    version: 1,
    by: applicationId,
    at: now,
  })
  const { wrapped, keys } = await world.keyring.create(tenantId, now)
  const changes: Change[] = [
    { kind: 'insert-tenant', tenant, keys: wrapped },
    { kind: 'insert', entity: 'application', row: application },
    { kind: 'insert', entity: 'application_key', row: stored },
  ]
  const actor = { applicationId, keyId: stored.id, traceId: SET_UP_TRACE }
  const events = auditEventsOf(actor, now, [], changes)
  // Not left to the service: then it could not tell a new audit log from one whose checkpoint was removed. Decision 0081.
  const sum = new AccessSum(keys, tenantId)
  sum.add(applicationStatement(tenantId, application))
  sum.add(applicationKeyStatement(tenantId, stored))
  const state = sum.state(changes.filter(changesAccess).length)
  const access = { revision: state.revision, digest: state.digest }
  const last = positionAfter(CHAIN_START, events)
  const covered = { removed: CHAIN_START, last, at: now, access }
  const proof = keys.attest(checkpointStatement(tenantId, covered))
  return {
    done: { tenantId, applicationId, apiKey: key },
    changes: [
      ...changes,
      { kind: 'put-access-state', before: 0, state },
      { kind: 'append-audit-events', events },
      { kind: 'put-audit-checkpoint', checkpoint: { ...covered, proof } },
    ],
  }
}

/** Stands in the audit log in place of a request's trace id. */
const SET_UP_TRACE = 'set-up'

const NAME = new RegExp(`^\\P{Cc}{1,${NAME_CHARS_MAX}}$`, 'u')
