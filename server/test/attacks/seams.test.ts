/** Where capabilities meet: transactions and the audit log, deletion and everything that goes on by itself. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { AUDIT_CHECKPOINT_LAG_MS_MAX, TRANSACTION_LIFETIME_MS } from '../../src/base/limits.ts'
import { auditCheckpointer } from '../../src/audit/checkpoint.ts'
import { sweepAuditLogs } from '../../src/audit/retention.ts'
import { verifyAuditLog } from '../../src/audit/verification.ts'
import { clearDeletedTenants } from '../../src/tenants/clear-deleted-tenants.ts'
import { stillVault, type Method, type StillVault } from '../kit/still-vault.ts'
import { REVEAL_ALL } from '../kit/token-stage.ts'
import { transactionStage, type TransactionStage } from '../kit/transaction-stage.ts'

const CARD = { type: 'card', data: { number: '4242424242424242' } }

describe('the audit log of a transaction', () => {
  test('that took its time is intact before it has a checkpoint, whatever else is done', async () => {
    const stage = await transactionStage()
    const { world, tenantId } = stage.vault
    const checkpoint = auditCheckpointer(world)
    const transaction = await stage.begin()
    await stage.make(transaction, CARD)
    await checkpoint()
    world.clock.pass(AUDIT_CHECKPOINT_LAG_MS_MAX * 2)
    assert.equal((await stage.commit(transaction)).status, 200)
    await stage.make(null, CARD)
    assert.equal((await verifyAuditLog(world, tenantId)).flaw, null)
    await checkpoint()
    assert.equal((await verifyAuditLog(world, tenantId)).flaw, null)
    assert.deepEqual(world.logged.filter(isFault), [])
  })

  test('says once what was done, by whom, and only when it was committed', async () => {
    const stage = await transactionStage()
    const { vault } = stage
    const ids: Record<string, string> = {}
    for (const end of ['commit', 'rollback', 'expire'] as const) {
      const transaction = await stage.begin()
      ids[end] = await stage.make(transaction, CARD)
      const path = `/tokens/${ids[end]}`
      assert.equal((await stage.send('PATCH', path, transaction, { data: CARD.data })).status, 200)
      if (end === 'expire') vault.world.clock.pass(TRANSACTION_LIFETIME_MS)
      else assert.equal((await stage[end](transaction)).status, 200)
      await vault.world.store.sweep(vault.world.clock.now())
    }
    const done = async (id: string) => {
      const { data } = await logs(vault, `?entity_id=${id}`)
      return data.map((it) => it['message'])
    }
    const decided = 'Allowed: update token'
    assert.deepEqual(await done(ids['commit']!), ['Token updated', 'Token created', decided])
    for (const end of ['rollback', 'expire']) assert.deepEqual(await done(ids[end]!), [decided])
  })
})

describe('a request that names its transaction and an idempotency key', () => {
  test('is done again in another transaction, so that what that commits is there', async () => {
    const stage = await transactionStage()
    const make = async (transaction: string | null) => {
      const headers = {
        'bt-idempotency-key': 'again',
        ...(transaction !== null && { 'bt-transaction-id': transaction }),
      }
      const reply = await stage.vault.call('POST', '/tokens', {
        key: stage.key,
        body: CARD,
        headers,
      })
      assert.equal(reply.status, 201, reply.text)
      return reply.json()['id'] as string
    }
    const [first, second] = [await stage.begin(), await stage.begin()]
    const lost = await make(first)
    assert.equal(await make(first.toUpperCase()), lost)
    assert.equal((await stage.rollback(first)).status, 200)

    const kept = await make(second)
    assert.equal(await make(second), kept)
    assert.equal((await stage.commit(second)).status, 200)
    assert.equal(await stage.seen(kept), 200)
    assert.equal(await stage.seen(await make(null)), 200)
  })
})

describe('a card that is tokenized in a transaction and elsewhere', () => {
  test('has no duplicate that may never be there, through any endpoint', async () => {
    const stage = await transactionStage({ settings: { deduplicateTokens: true } })
    const body = { ...CARD, deduplicate_token: true }
    const asked: [path: string, body: Json, idIn: (reply: string) => Json][] = [
      ['/tokens', body, (it) => (JSON.parse(it) as JsonObject)['id']!],
      ['/tokenize', body, (it) => (JSON.parse(it) as JsonObject)['id']!],
      ['/tokenize', { a: [body] }, (it) => (JSON.parse(it) as { a: JsonObject[] }).a[0]!['id']!],
    ]
    const idsOf = async (within: string | null): Promise<Json[]> => {
      const ids: Json[] = []
      for (const [path, sent, idIn] of asked) {
        const reply = await stage.send('POST', path, within, sent)
        assert.ok([200, 201].includes(reply.status), reply.text)
        ids.push(idIn(reply.text))
      }
      return ids
    }
    const [first, second] = [await stage.begin(), await stage.begin()]
    const seen = []
    for (const within of [first, second, null]) seen.push(new Set(await idsOf(within)))
    for (const it of seen) assert.equal(it.size, 1)
    const [inFirst, inSecond, outside] = seen.map((it) => [...it][0] as string)
    assert.equal(new Set([inFirst, inSecond, outside]).size, 3)
    // The token visible outside transactions is the duplicate for all later requests.
    assert.deepEqual(new Set(await idsOf(await stage.begin())), new Set([outside]))
    assert.equal((await stage.rollback(first)).status, 200)
    assert.equal((await stage.commit(second)).status, 200)
    assert.deepEqual(
      await Promise.all([inFirst, inSecond, outside].map((it) => stage.seen(it!))),
      [404, 200, 200],
    )
    const { data } = (await stage.send('GET', '/tokens', null)).json()
    assert.equal((data as Json[]).length, 2)
    assert.ok(seen[1]!.has((await idsOf(null))[0]!), 'the older one is the duplicate')
  })
})

describe('a tenant that is deleted', () => {
  test('leaves no other tenant busy, and no false alarm, with an audit log, a transaction and a long list', async () => {
    const stage = await transactionStage({ tokensMax: 1000 })
    const { vault } = stage
    const { world, tenantId } = vault
    const theirs = await vault.addTenant('theirs')
    const transaction = await stage.begin()
    await stage.make(transaction, CARD)
    const many: Json = Array.from({ length: 600 }, (_, n) => `value ${n}`)
    assert.equal((await stage.send('POST', '/tokenize', transaction, many)).status, 200)
    const checkpoint = auditCheckpointer(world)
    await checkpoint()
    assert.equal(
      (await vault.call('DELETE', '/tenants/self', { key: vault.managementKey })).status,
      204,
    )
    world.clock.pass(TRANSACTION_LIFETIME_MS)
    await checkpoint()
    await sweepAuditLogs(world, 0)
    await world.store.sweep(world.clock.now())
    world.clock.pass(1)
    await clearDeletedTenants(world)
    await sweepAuditLogs(world, 0)
    assert.deepEqual(world.logged.filter(isFault), [], inspect(world.logged))
    assert.deepEqual(await world.store.tenants.deleted(), [])
    assert.equal(await world.store.auditLog.state(tenantId), null)
    assert.equal(await world.store.transactions.find(tenantId, transaction), null)
    assert.equal((await vault.call('GET', '/applications', { key: theirs })).status, 200)
  })

  test('is gone for a request that was on its way: 401, and no fault', async () => {
    let atKeys: () => Promise<unknown> = async () => undefined
    let waiting = 0
    const vault = await stillVault({
      oneServer: 'what is forgotten at once',
      change: (world) => ({
        ...world,
        keyring: {
          create: (...asked) => world.keyring.create(...asked),
          forget: (tenantId) => world.keyring.forget(tenantId),
          open: async (tenantId) => {
            waiting += 1
            await atKeys()
            return await world.keyring.open(tenantId)
          },
        },
      }),
    })
    const key = await vault.keyFor({ permissions: ['token:create'], rules: [REVEAL_ALL] })
    const made = await vault.call('POST', '/tokens', { key, body: CARD })
    const id = made.json()['id'] as string
    const asked: [Method, string, Json | undefined][] = [
      ['GET', `/tokens/${id}`, undefined],
      ['POST', '/tokens', CARD],
      ['GET', '/tokens', undefined],
      ['POST', '/detokenize', `{{ ${id} }}`],
    ]
    const { promise, resolve } = Promise.withResolvers<void>()
    atKeys = () => promise
    waiting = 0
    const replies = asked.map(([method, path, body]) =>
      vault.call(method, path, { key, ...(body !== undefined && { body }) }),
    )
    while (waiting < asked.length) await new Promise((done) => void setImmediate(done))
    const deleted = await vault.call('DELETE', '/tenants/self', { key: vault.managementKey })
    assert.equal(deleted.status, 204)
    resolve()
    for (const reply of await Promise.all(replies)) {
      assert.equal(reply.status, 401, reply.text)
      assert.ok(!reply.text.includes('4242'))
    }
  })
})

describe('what a session is shown through lists, searches and payloads', () => {
  test('is what it is shown of each token by itself, and nothing uncommitted', async () => {
    const stage = await sessionStage()
    const { vault, read, ids } = stage
    const { key } = stage
    const shown = new Map<string, Json | undefined>()
    for (const id of ids) {
      const reply = await read(id)
      if (reply.status === 200) shown.set(id, reply.json()['data'])
    }
    assert.ok(shown.size > 0 && shown.size < ids.length)
    for (const [method, path, body] of [
      ['GET', '/tokens', undefined],
      ['GET', '/v2/tokens', undefined],
      ['GET', `/tokens?${ids.map((it) => `id=${it}`).join('&')}`, undefined],
    ] as const) {
      const reply = await vault.call(method, path, { key, ...(body !== undefined && { body }) })
      assert.equal(reply.status, 200, reply.text)
      const listed = reply.json()['data'] as JsonObject[]
      for (const it of listed) {
        const id = it['id'] as string
        assert.ok(shown.has(id), `${path} lists what cannot be read`)
        assert.deepEqual(it['data'], shown.get(id), path)
      }
    }
    for (const id of ids) {
      const reply = await vault.call('POST', '/detokenize', { key, body: { it: `{{ ${id} }}` } })
      assert.equal(reply.status === 200, shown.has(id), reply.text)
      if (reply.status === 200) assert.deepEqual(reply.json()['it'], shown.get(id) ?? null)
    }
  })

  test('shrinks with the rights of who authorised it, in lists too', async () => {
    const stage = await sessionStage()
    const { vault, key } = stage
    const count = async () => {
      const reply = await vault.call('GET', '/tokens', { key })
      return reply.status === 200 ? (reply.json()['data'] as Json[]).length : reply.status
    }
    assert.notEqual(await count(), 0)
    assert.notEqual(await count(), 403)
    const rules = [{ ...REVEAL_ALL, container: '/elsewhere/' }]
    await vault.call('PUT', `/applications/${stage.grantor}`, {
      key: vault.managementKey,
      body: { name: 'grantor', rules },
    })
    assert.ok([0, 403].includes(await count()))
    const search = await vault.call('POST', '/tokens/search', { key, body: { query: 'type:card' } })
    assert.equal(search.status, 403)
  })
})

async function sessionStage() {
  const stage: TransactionStage = await transactionStage()
  const { vault } = stage
  const everything = ['token:create', 'token:read', 'token:search', 'token:update', 'token:delete']
  const opener = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
  const giving = await vault.call('POST', '/applications', {
    key: vault.managementKey,
    body: {
      name: 'grantor',
      type: 'private',
      rules: [
        { ...REVEAL_ALL, container: '/a/', permissions: everything },
        {
          ...REVEAL_ALL,
          priority: 2,
          container: '/b/',
          transform: 'mask',
          permissions: everything,
        },
      ],
    },
  })
  assert.equal(giving.status, 201, giving.text)
  const containers = [['/a/'], ['/b/'], ['/c/'], ['/a/', '/b/'], ['/a/inner/'], ['/a/', '/c/']]
  const ids = []
  for (const it of containers) ids.push(await stage.make(null, { ...CARD, containers: it }))
  const transaction = await stage.begin()
  ids.push(await stage.make(transaction, { ...CARD, containers: ['/a/'] }))
  const opened = (await vault.call('POST', '/sessions', { key: opener })).json()
  const session = opened['session_key'] as string
  const rule = (priority: number, value: string, transform: string): JsonObject => ({
    priority,
    conditions: [{ attribute: 'container', operator: 'starts_with', value }],
    transform,
    permissions: ['token:read', 'token:update'],
  })
  const authorized = await vault.call('POST', '/sessions/authorize', {
    key: giving.json()['key'] as string,
    body: {
      nonce: opened['nonce']!,
      rules: [rule(1, '/a/', 'reveal'), rule(2, '/b/', 'mask')],
    },
  })
  assert.equal(authorized.status, 200, authorized.text)
  return {
    vault,
    key: session,
    grantor: giving.json()['id'] as string,
    ids,
    read: (id: string) => vault.call('GET', `/tokens/${id}`, { key: session }),
  }
}

async function logs(vault: StillVault, query: string): Promise<{ data: JsonObject[] }> {
  const reply = await vault.call('GET', `/logs${query}`, { key: vault.managementKey })
  assert.equal(reply.status, 200, reply.text)
  return { data: reply.json()['data'] as JsonObject[] }
}

/** Faults are logged with an error. */
function isFault(logged: unknown): boolean {
  return (logged as unknown[])[1] instanceof Error
}
