import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stillWorld, thinKeyProvider, type StillWorld } from '../../test/kit/still-world.ts'
import { IDENTITY_CACHE_MS } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Store } from '../ports/store.ts'
import { sessionStatement } from '../ports/access-state.ts'
import type { KeyHolder, StoredApplication, StoredSession } from '../ports/stored.ts'
import { hashApiKey, makeApiKey } from './api-key.ts'
import { createIdentities, type Identities } from './authenticate.ts'
import { setUp } from './applications/set-up.ts'

test('authenticate() tells who holds a key', async () => {
  const { identities, first } = await oneTenant()
  const principal = await identities.authenticate(first.apiKey)
  assert.equal(principal.tenantId, first.tenantId)
  assert.equal(principal.applicationId, first.applicationId)
  assert.equal(principal.plan, 'enterprise')
  assert.equal(principal.type, 'management')
  assert.ok(principal.permissions.includes('application:create'))
})

test('authenticate() sorts the rules by priority', async () => {
  const { world, identities, first, application } = await oneTenant()
  const rule = { description: '', container: '/', transform: 'mask', permissions: [] } as const
  const rules = [3, 1, 2].map((priority) => ({ ...rule, priority }))
  await update(world.store, first.tenantId, { ...application, rules })
  const principal = await identities.authenticate(first.apiKey)
  assert.deepEqual(
    principal.rules.map((it) => it.priority),
    [1, 2, 3],
  )
})

test('authenticate() refuses a missing key, and keys that do not exist', async () => {
  const { world, identities } = await oneTenant()
  const refusal = async (key: string | undefined): Promise<unknown> => {
    try {
      return await identities.authenticate(key)
    } catch (error) {
      return error instanceof ServiceError ? error.code : error
    }
  }
  assert.equal(await refusal(undefined), 'key_missing')
  assert.equal(await refusal(''), 'key_missing')
  assert.equal(await refusal('key'), 'key_unknown')
  assert.equal(await refusal(makeApiKey('private', world.random)), 'key_unknown')
})

test('authenticate() asks no store about a hundred thousand keys with a wrong checksum', async () => {
  const { identities, first, lookups } = await oneTenant()
  const digits = '0123456789abcdefghijklmnopqrstuvwxyz'
  for (let it = 0; it < 100_000; it++) {
    const end = [
      it % 36,
      Math.floor(it / 36) % 36,
      Math.floor(it / 1296) % 36,
      Math.floor(it / 46656),
    ]
    const forged = first.apiKey.slice(0, -4) + end.map((digit) => digits[digit]).join('')
    if (forged === first.apiKey) continue
    assert.throws(() => void identities.authenticate(forged), { code: 'key_unknown' })
  }
  assert.equal(lookups(), 0)
})

test('authenticate() answers at once, without asking, for a second after it asked', async () => {
  const { world, identities, first, lookups } = await oneTenant()
  const principal = await identities.authenticate(first.apiKey)
  world.clock.pass(IDENTITY_CACHE_MS - 0.5)
  assert.equal(identities.authenticate(first.apiKey), principal)
  assert.equal(lookups(), 1)
  world.clock.pass(0.5)
  assert.ok(identities.authenticate(first.apiKey) instanceof Promise)
  assert.equal(lookups(), 2)
})

test('authenticate() counts the second from the question, not from the answer', async () => {
  const { world, identities, first, slow } = await oneTenant()
  const answer = identities.authenticate(first.apiKey)
  world.clock.pass(IDENTITY_CACHE_MS)
  slow.resolve()
  await answer
  assert.ok(identities.authenticate(first.apiKey) instanceof Promise)
})

test('authenticate() asks once for requests that arrive together', async () => {
  const { identities, first, lookups } = await oneTenant()
  await Promise.all(
    Array.from({ length: 50 }, async () => await identities.authenticate(first.apiKey)),
  )
  assert.equal(lookups(), 1)
})

test('authenticate() does not keep a "no"', async () => {
  const { world, identities, first, lookups } = await oneTenant()
  const apiKey = makeApiKey('management', world.random)
  await assert.rejects(async () => await identities.authenticate(apiKey), { code: 'key_unknown' })
  await addKey(identities.store, first, apiKey)
  assert.equal((await identities.authenticate(apiKey)).tenantId, first.tenantId)
  assert.equal(lookups(), 2)
})

test('authenticate() honours a change made elsewhere within a second', async () => {
  const { world, identities, first, application } = await oneTenant()
  await identities.authenticate(first.apiKey)
  await update(world.store, first.tenantId, { ...application, permissions: [] })
  world.clock.pass(IDENTITY_CACHE_MS)
  assert.deepEqual((await identities.authenticate(first.apiKey)).permissions, [])
})

test('authenticate() honours a change made here at once', async () => {
  const { identities, first, application } = await oneTenant()
  await identities.authenticate(first.apiKey)
  await update(identities.store, first.tenantId, { ...application, permissions: ['log:read'] })
  assert.deepEqual((await identities.authenticate(first.apiKey)).permissions, ['log:read'])
  const change = { kind: 'delete', entity: 'application', id: first.applicationId } as const
  await identities.store.commit(first.tenantId, [change, LEFT])
  await assert.rejects(async () => await identities.authenticate(first.apiKey), {
    code: 'key_unknown',
  })
})

test('authenticate() does not keep an answer to a question from before a change', async () => {
  const { identities, first, application, slow } = await oneTenant()
  const early = identities.authenticate(first.apiKey)
  await update(identities.store, first.tenantId, { ...application, permissions: [] })
  const late = identities.authenticate(first.apiKey)
  slow.resolve()
  await early
  assert.deepEqual((await late).permissions, [])
  assert.deepEqual((await identities.authenticate(first.apiKey)).permissions, [])
})

test('authenticate() forgets also when it is unknown whether the change was made', async () => {
  const { world, first, lookups, counted } = await oneTenant()
  const failing: Store = {
    ...counted,
    commit: async () => {
      throw new Error('Cannot commit')
    },
  }
  const identities = createIdentities({ ...world, store: failing })
  await identities.authenticate(first.apiKey)
  const change = { kind: 'delete', entity: 'application', id: first.applicationId } as const
  await assert.rejects(identities.store.commit(first.tenantId, [change, LEFT]))
  await identities.authenticate(first.apiKey)
  assert.equal(lookups(), 2)
})

test('authenticate() keeps what it knows when tokens are stored', async () => {
  const { identities, first, lookups } = await oneTenant()
  await identities.authenticate(first.apiKey)
  await identities.store.commit(first.tenantId, [{ kind: 'insert-tokens', tokens: [] }])
  await identities.authenticate(first.apiKey)
  assert.equal(lookups(), 1)
})

test('authenticate() does not know an application from the moment it expires', async () => {
  const { world, identities, first, application } = await oneTenant()
  const expiresAt = world.clock.now() + 400
  await update(identities.store, first.tenantId, { ...application, expiresAt })
  await identities.authenticate(first.apiKey)
  world.clock.pass(399)
  await identities.authenticate(first.apiKey)
  world.clock.pass(1)
  await assert.rejects(async () => await identities.authenticate(first.apiKey), {
    code: 'key_unknown',
  })
})

test('authenticate() knows a session by its key, without rights until it is given some elsewhere', async () => {
  const { world, identities, first } = await oneTenant()
  const key = await openSession(world, first)
  const before = await identities.authenticate(key)
  assert.deepEqual([before.type, before.keyId], ['session', SESSION])
  assert.deepEqual([before.permissions, before.within?.permissions], [[], []])
  await authorizeSession(world, first)
  const after = await identities.authenticate(key)
  assert.deepEqual(after.permissions, ['token:read'])
  assert.ok(after.within?.permissions.includes('tenant:read'))
})

test('authenticate() believes a session for a second, and not past its end', async () => {
  const { world, identities, first } = await oneTenant()
  const key = await openSession(world, first)
  await authorizeSession(world, first)
  const principal = await identities.authenticate(key)
  const change = { kind: 'delete', entity: 'application', id: first.applicationId } as const
  assert.equal(await world.store.commit(first.tenantId, [change, LEFT]), null)
  world.clock.pass(IDENTITY_CACHE_MS - 1)
  assert.equal(identities.authenticate(key), principal)
  world.clock.pass(1)
  await assert.rejects(async () => await identities.authenticate(key), { code: 'key_unknown' })
})

test('authenticate() forgets a session at once when a key is deleted here, and at the instant it ends', async () => {
  for (const end of ['deleted', 'ended'] as const) {
    const { world, identities, first } = await oneTenant()
    const key = await openSession(world, first)
    await authorizeSession(world, first)
    world.clock.pass(SESSION_MS - 100)
    await identities.authenticate(key)
    if (end === 'ended') {
      world.clock.pass(99)
      await identities.authenticate(key)
      world.clock.pass(1)
    } else {
      const change = { kind: 'delete', entity: 'application', id: first.applicationId } as const
      assert.equal(await identities.store.commit(first.tenantId, [change, LEFT]), null)
    }
    await assert.rejects(async () => await identities.authenticate(key), { code: 'key_unknown' })
  }
})

interface IdentifyStage {
  readonly world: StillWorld
  readonly identities: Identities
  readonly first: Awaited<ReturnType<typeof setUp>>
  readonly application: StoredApplication
  /** How many times the store looked up a key. */
  readonly lookups: () => number
  /** Once a test has read it, the store's first answer waits until it is resolved. */
  readonly slow: PromiseWithResolvers<void>
  readonly counted: Store
}

async function oneTenant(): Promise<IdentifyStage> {
  const world = stillWorld()
  const first = await setUp(world, thinKeyProvider(), { name: 'first', plan: 'enterprise' })
  const application = await world.store.applications.find(first.tenantId, first.applicationId)
  let lookups = 0
  let slow: PromiseWithResolvers<void> | undefined
  const findByKeyHash = async (hash: Uint8Array): Promise<KeyHolder | null> => {
    lookups++
    const holder = await world.store.applications.findByKeyHash(hash)
    if (lookups === 1) await slow?.promise
    return holder
  }
  const applications = { ...world.store.applications, findByKeyHash }
  const counted: Store = { ...world.store, applications }
  return {
    world,
    counted,
    identities: createIdentities({ ...world, store: counted }),
    first,
    application: application!,
    lookups: () => lookups,
    get slow() {
      return (slow ??= Promise.withResolvers<void>())
    },
  }
}

async function update(store: Store, tenantId: string, application: StoredApplication) {
  assert.equal(
    await store.commit(tenantId, [
      { kind: 'update', entity: 'application', row: application },
      LEFT,
    ]),
    null,
  )
}

async function addKey(
  store: Store,
  { tenantId, applicationId }: IdentifyStage['first'],
  key: string,
) {
  const stored = {
    id: '01945d00-0000-4000-8000-00000000000d',
    applicationId,
    hash: hashApiKey(key),
    prefix: '',
    version: 2,
    createdBy: applicationId,
    createdAt: 0,
  }
  const change = { kind: 'insert', entity: 'application_key', row: stored } as const
  assert.equal(await store.commit(tenantId, [change, LEFT]), null)
}

const LEFT = { kind: 'leave-access-state' } as const
const SESSION = '01945d00-0000-4000-8000-00000000000e'
const SESSION_MS = 5_000

/** Opens a session of the first application, whose type does not matter here, and returns its key. */
async function openSession(world: StillWorld, first: IdentifyStage['first']): Promise<string> {
  const key = makeApiKey('session', world.random)
  const opened = {
    id: SESSION,
    ...(await keyOf(world, first)),
    hash: hashApiKey(key),
    nonceHash: hashApiKey('nonce'),
    createdAt: world.clock.now(),
    expiresAt: world.clock.now() + SESSION_MS,
    authorization: null,
  }
  const session = { ...opened, proof: await proofOf(world, first.tenantId, opened) }
  const change = { kind: 'insert', entity: 'session', row: session } as const
  assert.equal(await world.store.commit(first.tenantId, [change]), null)
  return key
}

async function authorizeSession(world: StillWorld, first: IdentifyStage['first']): Promise<void> {
  const granted = {
    authorization: {
      permissions: ['token:read'],
      rules: [],
      ...(await keyOf(world, first)),
    },
    expiresAt: world.clock.now() + SESSION_MS,
  } as const
  const nonce = hashApiKey('nonce')
  const now = world.clock.now()
  const session = (await world.store.sessions.findByNonce(first.tenantId, nonce, now))!
  const proof = await proofOf(world, first.tenantId, { ...session, ...granted })
  const change = { kind: 'authorize-session', id: SESSION, ...granted, proof, now } as const
  assert.equal(await world.store.commit(first.tenantId, [change]), null)
}

async function proofOf(
  { keyring }: StillWorld,
  tenantId: string,
  session: Omit<StoredSession, 'proof'>,
): Promise<Uint8Array> {
  return (await keyring.open(tenantId)).attest(sessionStatement(tenantId, session))
}

async function keyOf({ store }: StillWorld, { tenantId, applicationId }: IdentifyStage['first']) {
  const [key] = await store.applications.keys(tenantId, applicationId)
  return { applicationId, keyId: key!.id }
}
