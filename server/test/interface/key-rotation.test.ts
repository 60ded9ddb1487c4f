/** Data sealed for later stays usable when the data key is replaced in the meantime. Decision 0037. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { JsonObject } from '../../src/base/json.ts'
import { rotateDataKey } from '../../src/key-rotation/rotate-data-key.ts'
import { rotateRootKey } from '../../src/key-rotation/rotate-root-key.ts'
import type { TenantKeys } from '../../src/ports/keyring.ts'
import { RunnerUnavailable } from '../../src/ports/reactor-runner.ts'
import { withCommit } from '../../src/ports/with-commit.ts'
import { bodyOf, callbackStage, headersOf, type CallbackStage } from '../kit/callback-stage.ts'
import { returned } from '../kit/still-runner.ts'
import { stillVault } from '../kit/still-vault.ts'
import { STILL_NOW, thinKeyProvider } from '../kit/still-world.ts'

/** Replaces the data key, and destroys the one before at once. */
async function rotate({ vault: { world, tenantId, keyMaker } }: CallbackStage): Promise<void> {
  const options = { maker: keyMaker, pause: async () => {}, report: () => {}, retirementMs: 0 }
  await rotateDataKey(world, tenantId, options)
  const keys = await world.store.tenants.keys(tenantId)
  assert.equal(keys.filter((it) => it.purpose === 'enc').length, 1)
}

async function secretOf({ manage }: CallbackStage): Promise<string> {
  const reply = await manage('GET', '/callbacks/secret')
  assert.equal(reply.status, 200, reply.text)
  return (reply.json()['secrets'] as { secret: string }[])[0]!.secret
}

async function begin({ vault, id, key }: CallbackStage): Promise<string> {
  const body = { args: { a: 2 } }
  const reply = await vault.call('POST', `/reactors/${id}/react-async`, { key, body })
  assert.equal(reply.status, 202, reply.text)
  return `/reactors/${id}/results/${reply.json()['asyncReactorRequestId'] as string}`
}

async function fetched({ vault, key }: CallbackStage, path: string): Promise<JsonObject> {
  const reply = await vault.call('GET', path, { key })
  assert.equal(reply.status, 200, reply.text)
  return reply.json()
}

test('a rotation leaves waiting jobs, results and the secret of callbacks readable', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: STILL_NOW })
  const stage = await callbackStage({ oneServer: 'a data key is replaced' })
  const { invoke, work, sent } = stage
  const [secret, kept] = [await secretOf(stage), await begin(stage)]
  await work()
  await invoke()
  await rotate(stage)
  assert.equal(await secretOf(stage), secret)
  assert.deepEqual(await fetched(stage, kept), { raw: { a: 2 } })
  await work()
  assert.deepEqual(sent.map(bodyOf), [{ raw: { a: 1 } }])
  const body = new Webhook(secret).verify(sent[0]!.body.toString(), headersOf(sent[0]!))
  assert.deepEqual(body, { raw: { a: 1 } })
})

test('a rotation from beginning to end while code runs leaves its result readable', async () => {
  const stage: CallbackStage = await callbackStage({
    oneServer: 'a data key is replaced',
    behave: async ({ args }) => {
      await rotate(stage)
      return returned({ raw: args })
    },
  })
  const kept = await begin(stage)
  await stage.work()
  assert.deepEqual(await fetched(stage, kept), { raw: { a: 2 } })
})

test('a rotation while a run finds no capacity leaves the job to be run later', async () => {
  let full = true
  const stage: CallbackStage = await callbackStage({
    oneServer: 'a data key is replaced',
    behave: async ({ args }) => {
      if (!full) return returned({ raw: args })
      await rotate(stage)
      throw new RunnerUnavailable('full')
    },
  })
  const kept = await begin(stage)
  await stage.work()
  full = false
  await stage.pass(1)
  assert.deepEqual(await fetched(stage, kept), { raw: { a: 2 } })
})

test('a rotation while a receiver is asked leaves the callback to be sent again, and to become a dead letter', async () => {
  let asked = async (): Promise<void> => {}
  const stage = await callbackStage({
    oneServer: 'a data key is replaced',
    change: (world) => {
      const vet: typeof world.egress.vet = async (...about) => {
        await asked()
        return await world.egress.vet(...about)
      }
      return { ...world, egress: { ...world.egress, vet } }
    },
  })
  const { invoke, work, pass, sent, receive, deadLetters } = stage
  await invoke()
  asked = () => rotate(stage)
  receive(() => ({ status: 500 }))
  await work()
  receive(() => ({ status: 410 }))
  await pass(1)
  assert.deepEqual(sent.map(bodyOf), [{ raw: { a: 1 } }, { raw: { a: 1 } }])
  assert.deepEqual(
    (await deadLetters()).map((it) => it['id']),
    [headersOf(sent[0]!)['webhook-id']],
  )
})

for (const when of ['before', 'just as']) {
  test(`no data key is made under a root key that was replaced ${when} it is`, async (t) => {
    const vault = await stillVault({ oneServer: 'a data key is replaced' })
    t.after(() => vault.close())
    const { world, tenantId, keyMaker: maker } = vault
    const replace = () => rotateRootKey(world, maker, thinKeyProvider('root-b'))
    if (when === 'before') await replace()
    const store = withCommit(world.store, async (id, changes) => {
      assert.equal(await replace(), 3)
      return await world.store.commit(id, changes)
    })
    const options = { maker, pause: async () => {}, report: () => {}, retirementMs: 0 }
    const rotated = rotateDataKey({ ...world, store }, tenantId, options)
    await assert.rejects(rotated, /root key is root-b, but this server was started with root-a/)
    assert.equal((await world.store.tenants.keys(tenantId)).length, 3)
  })
}

for (const [what, at] of [
  ['the version of its key', 4],
  ['what is sealed', 20],
] as const) {
  test(`a value that does not open, for ${what} was damaged, stops the rotation, and its key is kept`, async (t) => {
    const vault = await stillVault({ oneServer: 'a data key is replaced' })
    t.after(() => vault.close())
    const { world, tenantId, keyMaker: maker } = vault
    const key = await vault.keyFor({ permissions: ['token:create'] })
    const body = { type: 'token', data: 'damaged' }
    const made = await vault.call('POST', '/tokens', { key, body })
    const [found] = await world.store.tokens.find(tenantId, [made.json()['id'] as string])
    const data = found!.data.with(at, found!.data[at]! ^ 0x40)
    const token = { ...found!, data, revision: found!.revision + 1 }
    const damage = {
      kind: 'update-token',
      token,
      unlessDuplicate: false,
      now: world.clock.now(),
    } as const
    assert.equal(await world.store.commit(tenantId, [damage]), null)
    const options = { maker, pause: async () => {}, report: () => {}, retirementMs: 0 }
    const rotated = rotateDataKey(world, tenantId, options)
    await assert.rejects(rotated, /something among the tokens does not open, and its key is kept/)
    const keys = await world.store.tenants.keys(tenantId)
    assert.equal(keys.filter((it) => it.purpose === 'enc').length, 2)
  })
}

test('a server that is held up in a rotation until the next is over finds nothing to do, and undoes nothing', async (t) => {
  const vault = await stillVault({ oneServer: 'a data key is replaced' })
  t.after(() => vault.close())
  const { world, tenantId, keyMaker: maker } = vault
  const permissions = ['token:create', 'token:read']
  const rule = { priority: 1, container: '/', transform: 'reveal', permissions }
  const key = await vault.keyFor({ permissions: [], rules: [rule] })
  const made = await vault.call('POST', '/tokens', { key, body: { type: 'token', data: 'kept' } })
  const options = { maker, pause: async () => {}, report: () => {}, retirementMs: 0 }
  const store = withCommit(world.store, async (id, changes) => {
    if (changes[0]!.kind === 'retire-data-keys') {
      await rotateDataKey(world, tenantId, options)
      await rotateDataKey(world, tenantId, options)
    }
    return await world.store.commit(id, changes)
  })
  await rotateDataKey({ ...world, store }, tenantId, options)
  const keys = await world.store.tenants.keys(tenantId)
  assert.deepEqual(
    keys.filter((it) => it.purpose === 'enc').map((it) => it.version),
    [3],
  )
  const found = await vault.call('GET', `/tokens/${made.json()['id'] as string}`, { key })
  assert.equal(found.json()['data'], 'kept', found.text)
})

test('a request that is held up until the key it sealed under is destroyed gets 503, and succeeds when it is repeated', async (t) => {
  let holds = true
  const vault = await stillVault({
    oneServer: 'a data key is replaced',
    store: 'postgres',
    change: (world) => ({
      ...world,
      store: withCommit(world.store, async (id, changes) => {
        if (holds && changes.some((it) => it.kind === 'insert-tokens')) {
          holds = false
          const { world: beside, keyMaker: maker } = vault
          const options = { maker, pause: async () => {}, report: () => {}, retirementMs: 0 }
          await rotateDataKey(beside, id, options)
        }
        return await world.store.commit(id, changes)
      }),
    }),
  })
  t.after(() => vault.close())
  const permissions = ['token:create', 'token:read']
  const rule = { priority: 1, container: '/', transform: 'reveal', permissions }
  const key = await vault.keyFor({ permissions: [], rules: [rule] })
  const body = { type: 'token', data: 'kept' }
  const headers = { 'bt-idempotency-key': 'once' }
  const create = () => vault.call('POST', '/tokens', { key, body, headers })
  const refused = await create()
  assert.deepEqual([refused.status, refused.json()['code']], [503, 'store_unavailable'])
  const made = await create()
  assert.equal(made.status, 201, made.text)
  const found = await vault.call('GET', `/tokens/${made.json()['id'] as string}`, { key })
  assert.equal(found.json()['data'], 'kept', found.text)
})

test('a transaction that ends while the last is walked through hides nothing from it', async (t) => {
  const held: { keys: TenantKeys | null } = { keys: null }
  const vault = await stillVault({
    oneServer: 'a data key is replaced',
    change: (world) => {
      const { keyring } = world
      const open: typeof keyring.open = (id) => held.keys ?? keyring.open(id)
      const create: typeof keyring.create = (id, now) => keyring.create(id, now)
      return { ...world, keyring: { create, open, forget: (id) => keyring.forget(id) } }
    },
  })
  t.after(() => vault.close())
  const { world, tenantId, keyMaker, call } = vault
  const permissions = ['token:create', 'token:read', 'token:update']
  const rule = { priority: 1, container: '/', transform: 'reveal', permissions }
  const key = await vault.keyFor({ permissions: [], rules: [rule] })
  const made = await call('POST', '/tokens', { key, body: { type: 'token', data: 'before' } })
  const path = `/tokens/${made.json()['id'] as string}`
  const begun = await call('POST', '/transactions', { key })
  const transaction = begun.json()['id'] as string
  const early = await world.keyring.open(tenantId)
  let [refused, ended] = [false, false]
  const store = {
    ...withCommit(world.store, async (id, changes) => {
      if (changes.some((it) => it.kind === 'retire-data-keys')) {
        // Held up since before there was another key.
        held.keys = early
        const headers = { 'BT-TRANSACTION-ID': transaction }
        const reply = await call('PATCH', path, { key, headers, body: { data: 'after' } })
        assert.equal(reply.status, 200, reply.text)
        held.keys = null
        refused = true
      }
      return await world.store.commit(id, changes)
    }),
    tenants: {
      ...world.store.tenants,
      envelopes: async (...about: Parameters<typeof world.store.tenants.envelopes>) => {
        if (refused && !ended && about[1].after?.table === 'pending') {
          ended = true
          const reply = await call('POST', `/transactions/${transaction}/commit`, { key })
          assert.equal(reply.status, 200, reply.text)
        }
        return await world.store.tenants.envelopes(...about)
      },
    },
  }
  const options = { maker: keyMaker, pause: async () => {}, report: () => {}, retirementMs: 0 }
  await rotateDataKey({ ...world, store }, tenantId, options)
  assert.ok(ended)
  const found = await call('GET', path, { key })
  assert.equal(found.json()['data'], 'after', found.text)
})
