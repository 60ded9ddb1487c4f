/** The secrets that sign a tenant's callbacks: the current one and, for a while, its predecessor. */
import { openValue, unreadableIn } from '../../request/open-value.ts'
import { CALLBACK_SECRET_OVERLAP_MS } from '../../base/limits.ts'
import { Sensitive } from '../../base/sensitive.ts'
import type { StoredCallbackSecrets } from '../../ports/jobs.ts'
import type { SealContext, TenantKeys } from '../../ports/keyring.ts'
import { sealContextOf } from '../../ports/store/entities.ts'
import type { Change } from '../../ports/change.ts'
import type { World } from '../../ports/world.ts'
import { SECRET_PREFIX } from './signature.ts'

export interface CallbackSecret {
  readonly secret: Sensitive<string>
  /** An RSA key, for receivers that verify with a public one: PKCS #8 in DER, base64. */
  readonly signingKey: Sensitive<string>
  /** Expiry in epoch milliseconds; null for the newest. */
  readonly until: number | null
}

/** Returns the valid secrets, newest first; creates the first one if there is none. */
export async function callbackSecrets(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  tenantId: string,
): Promise<CallbackSecret[]> {
  for (;;) {
    const stored = await world.store.jobs.callbackSecrets(tenantId)
    const keys = await world.keyring.open(tenantId)
    if (stored !== null) return goodAt(openSecrets(keys, tenantId, stored), world.clock.now())
    const row = sealSecrets(keys, tenantId, [await newSecret(world, tenantId)], 0)
    await world.store.commit(tenantId, [{ kind: 'insert', entity: 'callback_secret', row }])
  }
}

/** Returns the secrets after a rotation, the new one and the previous one until its overlap ends, and the change that stores them. */
export async function withSecret(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  tenantId: string,
  fresh: CallbackSecret,
): Promise<{ readonly secrets: CallbackSecret[]; readonly change: Change }> {
  const now = world.clock.now()
  const before = await world.store.jobs.callbackSecrets(tenantId)
  const keys = await world.keyring.open(tenantId)
  const [last] = before === null ? [] : openUnlessDamaged(keys, tenantId, before)
  const until = now + CALLBACK_SECRET_OVERLAP_MS
  const secrets = [fresh, ...(last === undefined ? [] : [{ ...last, until }])]
  const kind = before === null ? 'insert' : 'update'
  const row = sealSecrets(keys, tenantId, secrets, (before?.revision ?? -1) + 1)
  return { secrets, change: { kind, entity: 'callback_secret', row } }
}

/** Generates a secret that is valid as soon as it is stored. */
export async function newSecret(
  { random }: Pick<World, 'random'>,
  tenantId: string,
): Promise<CallbackSecret> {
  const secret = SECRET_PREFIX + Buffer.from(random.bytes(SECRET_BYTES)).toString('base64')
  const signingKey = Buffer.from(await random.signingKey(tenantId)).toString('base64')
  return {
    secret: new Sensitive(secret),
    signingKey: new Sensitive(signingKey),
    until: null,
  }
}

/** Standard Webhooks requires 24 to 64. */
const SECRET_BYTES = 32

function goodAt(secrets: readonly CallbackSecret[], now: number): CallbackSecret[] {
  return secrets.filter(({ until }) => until === null || until > now)
}

function sealSecrets(
  keys: TenantKeys,
  tenantId: string,
  secrets: readonly CallbackSecret[],
  revision: number,
): StoredCallbackSecrets {
  const plain = secrets.map((it) => [it.secret.reveal(), it.signingKey.reveal(), it.until])
  return {
    secrets: keys.seal(contextOf(tenantId), new Sensitive(JSON.stringify(plain))),
    revision,
  }
}

/** Returns no secrets if they are damaged, so that a rotation repairs them. */
function openUnlessDamaged(
  ...[keys, tenantId, stored]: Parameters<typeof openSecrets>
): CallbackSecret[] {
  try {
    return openSecrets(keys, tenantId, stored)
  } catch (error) {
    if (unreadableIn(error) === null) throw error
    return []
  }
}

/** Throws `value_unreadable`. */
function openSecrets(
  keys: TenantKeys,
  tenantId: string,
  { secrets }: StoredCallbackSecrets,
): CallbackSecret[] {
  const name = { kind: 'callback_secrets', id: tenantId } as const
  const opened = openValue(keys, contextOf(tenantId), secrets, name)
  const plain = JSON.parse(opened.reveal()) as [string, string, number | null][]
  return plain.map(([secret, signingKey, until]) => ({
    secret: new Sensitive(secret),
    signingKey: new Sensitive(signingKey),
    until,
  }))
}

function contextOf(tenantId: string): SealContext {
  return sealContextOf('callback_secret', 'secrets', tenantId)
}
