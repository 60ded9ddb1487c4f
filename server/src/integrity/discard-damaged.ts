/** Removes damaged values from a vault that no service uses, so that everything else in it works as before. */
import { auditEventsOf } from '../request/audit-events.ts'
import { makeRootKeyCheck } from '../access/root-key-check.ts'
import { sealAccessRows } from '../access/seal-access-rows.ts'
import { ServiceError } from '../base/service-error.ts'
import { Sensitive } from '../base/sensitive.ts'
import { renderError } from '../request/render-error.ts'
import { sealContextOf } from '../key-rotation/seal-context.ts'
import { checkpointStatement } from '../ports/audit-log.ts'
import type { Change, RewrappedKey } from '../ports/change.ts'
import { TENANT_KEY_PURPOSES, type KeyRepair, type TenantKeyPurpose } from '../ports/keyring.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import { ENTITIES, SEALED_NAMES } from '../ports/store/entities.ts'
import type { EntityChange } from '../ports/store/entity-change.ts'
import type { StoredEnvelope } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { newSecret, withSecret } from '../reactors/callbacks/secrets.ts'

type DiscardWorld = Pick<World, 'clock' | 'random' | 'keyring' | 'store'>

/** A tenant key that was replaced because it could not be unwrapped. */
export interface ReplacedKey {
  readonly tenantId: string
  readonly purpose: TenantKeyPurpose
  readonly version: number
}

/**
 * Replaces every tenant key that cannot be unwrapped with a new one. Returns the replaced keys: by purpose, their envelopes are
 * lost, their fingerprints, or their search indexes and the proofs of audit checkpoints and access rows.
 */
export async function replaceDamagedKeys(
  world: Pick<World, 'clock' | 'store' | 'keyring'>,
  keyRepair: KeyRepair,
  rootKeys: KeyProvider,
): Promise<ReplacedKey[]> {
  const { tenants } = world.store
  const replaced: ReplacedKey[] = []
  const keys: RewrappedKey[] = []
  for (const tenantId of await tenants.ids()) {
    for (const it of await tenants.keys(tenantId)) {
      if (!TENANT_KEY_PURPOSES.includes(it.purpose)) {
        throw new Error(`Cannot replace a key of tenant ${tenantId}: its purpose is unknown`)
      }
      const intact = await keyRepair.isReadable(tenantId, it)
      const key = intact ? it : await keyRepair.replacementOf(tenantId, it)
      keys.push({ tenantId, before: it.wrapped, key })
      if (!intact) replaced.push({ tenantId, purpose: it.purpose, version: it.version })
    }
  }
  if (replaced.length === 0) return []
  const rootKey = await makeRootKeyCheck(rootKeys)
  await mustCommit(world, keys[0]?.tenantId ?? '', [
    { kind: 'replace-root-key', before: rootKeys.id, rootKey, keys },
  ])
  for (const { tenantId, purpose } of replaced) {
    world.keyring.forget(tenantId)
    if (purpose === 'idx') await renewProofs(world, tenantId)
  }
  return replaced
}

/**
 * Vouches for the audit log and the access rows as they are: what vouched for them before can no longer be verified, and would prevent
 * every new checkpoint.
 */
async function renewProofs(
  world: Pick<World, 'clock' | 'store' | 'keyring'>,
  tenantId: string,
): Promise<void> {
  const { revision, digest } = await sealAccessRows(world, tenantId)
  const state = await world.store.auditLog.state(tenantId)
  if (state === null) return
  const keys = await world.keyring.open(tenantId)
  const { removed, last } = state
  const next = { removed, last, at: world.clock.now(), access: { revision, digest } }
  const checkpoint = { ...next, proof: keys.attest(checkpointStatement(tenantId, next)) }
  await mustCommit(world, tenantId, [{ kind: 'put-audit-checkpoint', checkpoint }])
}

/**
 * Removes a damaged value and as little else as possible, and returns the effect as text for the operator:
 *
 *  - a token, proxy, reactor or job is deleted; of a card, only the security code if that alone is damaged;
 *  - a pending change is dropped with its transaction, which must not be committed in part;
 *  - a remembered response becomes an error, so that its request is still not carried out twice;
 *  - callback secrets are replaced.
 */
export async function discardDamaged(
  world: DiscardWorld,
  tenantId: string,
  damaged: StoredEnvelope,
): Promise<string> {
  switch (damaged.table) {
    case 'tokens':
      return await discardToken(world, tenantId, damaged)
    case 'pending':
      return await rollBack(world, tenantId, damaged.row)
    case 'answers':
      return await replaceAnswer(world, tenantId, damaged)
    case 'jobs':
      return await discardJob(world, tenantId, damaged.row)
    case 'callback_secrets':
      return await replaceSecrets(world, tenantId)
    default: {
      const entity = SEALED_NAMES.find((it) => ENTITIES[it].table === damaged.table)!
      const deletion = { kind: 'delete', entity, id: damaged.row } as EntityChange
      await mustCommit(world, tenantId, [deletion])
      return `the ${entity.replaceAll('_', ' ')} is deleted`
    }
  }
}

async function discardToken(
  world: DiscardWorld,
  tenantId: string,
  { id, row, part }: StoredEnvelope,
): Promise<string> {
  const { store } = world
  // An open transaction that changed or created the token would lock or hide it.
  const holder = await store.transactions.holderOf(tenantId, row)
  if (holder !== null) await end(world, tenantId, holder)
  const [token] = await store.tokens.find(tenantId, [id])
  if (token === undefined) {
    return holder === null
      ? 'the token is deleted'
      : 'its transaction is rolled back, and the token with it'
  }
  const change: Change =
    part === 'cvc'
      ? {
          kind: 'update-token',
          token: { ...token, cvc: null, revision: token.revision + 1 },
          unlessDuplicate: false,
          now: AT_ANY_TIME,
        }
      : { kind: 'delete-token', token, now: AT_ANY_TIME }
  await mustCommit(world, tenantId, [change])
  const also = holder === null ? '' : ', and a transaction that had changed it is rolled back'
  return part === 'cvc'
    ? `the security code is removed, and the rest of the card is kept${also}`
    : `the token is deleted${also}`
}

async function rollBack(
  world: DiscardWorld,
  tenantId: string,
  internalId: string,
): Promise<string> {
  const holder = await world.store.transactions.holderOf(tenantId, internalId)
  if (holder !== null) await end(world, tenantId, holder)
  return 'the transaction that changed the token is rolled back, and the token is as it was before'
}

/** Ends an open transaction: rolls it back, or marks it as expired if its time is over. */
async function end(
  world: DiscardWorld,
  tenantId: string,
  { id, expiresAt }: { readonly id: string; readonly expiresAt: number },
): Promise<void> {
  const now = world.clock.now()
  const as = expiresAt > now ? 'rolled_back' : 'expired'
  await mustCommit(world, tenantId, [
    { kind: 'end-transaction', id, as, now },
    { kind: 'end-parked-audit-events', transactionId: id, append: false },
  ])
}

async function replaceAnswer(
  world: DiscardWorld,
  tenantId: string,
  damaged: StoredEnvelope,
): Promise<string> {
  const keys = await world.keyring.open(tenantId)
  const answer = renderError(new ServiceError('value_unreadable'))
  const renewed = keys.seal(sealContextOf(damaged), new Sensitive(JSON.stringify(answer)))
  await mustCommit(world, tenantId, [
    { kind: 'renew-envelopes', envelopes: [{ ...damaged, renewed }] },
  ])
  return 'repetitions of its request get value_unreadable'
}

async function discardJob(world: DiscardWorld, tenantId: string, id: string): Promise<string> {
  const job = await world.store.jobs.find(tenantId, id)
  if (job !== null) {
    await mustCommit(world, tenantId, [
      { kind: 'delete', entity: 'job', id, revision: job.revision },
    ])
  }
  return 'the invocation is deleted; its result is not delivered'
}

async function replaceSecrets(world: DiscardWorld, tenantId: string): Promise<string> {
  const fresh = await newSecret(world, tenantId)
  const { change } = await withSecret(world, tenantId, fresh)
  await mustCommit(world, tenantId, [change])
  return 'callbacks are signed with a new secret: give it to the receivers'
}

/** Makes the changes, with their audit events: the tenant stands for the operator, who has no application. */
async function mustCommit(
  { clock, store }: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  changes: readonly Change[],
): Promise<void> {
  const actor = { applicationId: tenantId, keyId: tenantId, traceId: RESTORE_TRACE }
  const events = auditEventsOf(actor, clock.now(), [], changes)
  const conflict = await store.commit(tenantId, [
    ...changes,
    ...(events.length === 0 ? [] : [{ kind: 'append-audit-events', events } as const]),
  ])
  if (conflict === null) return
  throw new Error(`Cannot discard a damaged value: the store answered ${conflict.kind}`)
}

/** Stands in the audit log in place of a request's trace id. */
const RESTORE_TRACE = 'restore'

/** Before any expiry, so that no token counts as expired. */
const AT_ANY_TIME = 0
