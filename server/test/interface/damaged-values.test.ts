/** One damaged value: every other value stays usable, and the log names the damaged one. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CALLBACK_RETRIES } from '../../src/base/limits.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { ValueKind } from '../../src/ports/unreadable-value.ts'
import { discardDamaged } from '../../src/integrity/discard-damaged.ts'
import type { EnvelopeTable } from '../../src/ports/store/entities.ts'
import type { StoredEnvelope } from '../../src/ports/stored.ts'
import { bodyOf, callbackStage, RECEIVER } from '../kit/callback-stage.ts'
import { damage, envelopesOf } from '../kit/damage.ts'
import type { StillVault, Reply } from '../kit/still-vault.ts'
import { REVEAL_ALL, tokenStage } from '../kit/token-stage.ts'

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '737' }

describe('a damaged token', () => {
  test('is shown in lists and searches without data, as unreadable, beside the intact ones', async () => {
    const { vault, tokenize, key } = await tokenStage()
    const searcher = await vault.keyFor({
      rules: [{ ...REVEAL_ALL, permissions: ['token:read', 'token:search'] }],
    })
    const made: JsonObject[] = []
    for (const name of ['a', 'b', 'c']) {
      const token = { type: 'token', data: `secret ${name}`, metadata: { kind: 'x' } }
      made.push(Object(await tokenize(token)))
      vault.world.clock.pass(1)
    }
    const bad = await damageOne(vault, made[1]!['id'])
    const body = { query: 'metadata.kind:x' }
    const replies = [
      await vault.call('GET', '/tokens', { key: searcher }),
      await vault.call('GET', '/v2/tokens', { key: searcher }),
      await vault.call('POST', '/tokens/search', { key: searcher, body }),
      await vault.call('POST', '/v2/tokens/search', { key: searcher, body }),
    ]
    for (const reply of replies) {
      assert.equal(reply.status, 200, reply.text)
      const shown = reply.json()['data'] as JsonObject[]
      assert.deepEqual(
        shown.map((it) => [it['data'], it['_extras']]),
        [
          ['secret c', { deduplicated: false }],
          [undefined, { deduplicated: false, unreadable: true }],
          ['secret a', { deduplicated: false }],
        ],
      )
      assert.deepEqual([shown[1]!['id'], shown[1]!['metadata']], [made[1]!['id'], { kind: 'x' }])
    }
    const lines = logged(vault, 'value_unreadable')
    assert.equal(lines.length, replies.length)
    for (const it of lines) {
      assert.deepEqual([it['count'], it['values']], [1, [{ kind: 'token_data', id: bad.row }]])
    }
    assert.equal((await vault.call('GET', '/tokens', { key })).status, 200)
  })

  test('is logged by name among the first twenty of a list', async () => {
    const { vault, tokenize, revealKey } = await tokenStage()
    await tokenize(Array.from({ length: 25 }, (_, n) => `secret ${n}`))
    await damage(vault.world.store, vault.tenantId, isIn('tokens'))
    const reply = await vault.call('GET', '/tokens?size=25', { key: revealKey })
    assert.equal((reply.json()['data'] as Json[]).length, 25)
    const [line, ...others] = logged(vault, 'value_unreadable')
    assert.deepEqual(
      [line!['count'], (line!['values'] as Json[]).length, others.length],
      [25, 20, 0],
    )
  })

  test('gets 500 value_unreadable by id, in the proxy, in a payload and in arguments, and the log names it', async () => {
    const { vault, tokenize, revealKey } = await tokenStage()
    const user = await vault.keyFor({ permissions: ['token:use'] })
    const { id } = (await tokenize({ type: 'token', data: 'secret' })) as JsonObject
    await damageOne(vault, id)
    const expression = `{{ ${id as string} }}`
    const made = await vault.call('POST', '/reactors', {
      key: vault.managementKey,
      body: { name: 'x', code: 'module.exports = async () => ({})', configuration: {} },
    })
    const react = `/reactors/${made.json()['id'] as string}/react`
    const headers = { 'bt-proxy-url': 'https://destination.example' }
    const calls: [string, () => Promise<Reply>][] = [
      ['get', () => vault.call('GET', `/tokens/${id as string}`, { key: revealKey })],
      ['detokenize', () => vault.call('POST', '/detokenize', { key: revealKey, body: expression })],
      ['proxy', () => vault.call('POST', '/proxy', { key: user, headers, body: [expression] })],
      ['react', () => vault.call('POST', react, { key: user, body: { args: expression } })],
    ]
    for (const [what, call] of calls) {
      vault.world.logged.length = 0
      const reply = await call()
      const body = reply.json()
      const problem = (what === 'proxy' ? body['proxy_error'] : body) as JsonObject
      assert.deepEqual([what, reply.status, problem['code']], [what, 500, 'value_unreadable'])
      assert.ok(!reply.text.includes('secret'))
      const [line] = logged(vault, 'request_failed')
      assert.deepEqual([what, (line!['unreadable'] as JsonObject)['kind']], [what, 'token_data'])
    }
  })

  test('can be deleted', async () => {
    const { vault, tokenize, revealKey } = await tokenStage()
    const { id } = (await tokenize({ type: 'token', data: 'secret' })) as JsonObject
    await damageOne(vault, id)
    const key = await vault.keyFor({ permissions: ['token:delete'] })
    assert.equal((await vault.call('DELETE', `/tokens/${id as string}`, { key })).status, 204)
    const reply = await vault.call('GET', `/tokens/${id as string}`, { key: revealKey })
    assert.equal(reply.status, 404)
  })

  test('is not returned as a duplicate: the caller would believe that its data is stored', async () => {
    const { vault, tokenize, tryTokenize, key } = await tokenStage()
    const mask = '{{ data | reveal_last: 4 }}'
    const token = { type: 'token', data: 'secret', mask, deduplicate_token: true }
    const { id } = (await tokenize(token)) as JsonObject
    await damageOne(vault, id)
    const reply = await tryTokenize(token, key)
    assert.deepEqual([reply.status, reply.json()['code']], [500, 'value_unreadable'])
  })

  test('with only a damaged security code is readable again once that code has expired', async () => {
    const { vault, tokenize, revealKey } = await tokenStage()
    const { id } = (await tokenize({ type: 'card', data: CARD })) as JsonObject
    await damage(vault.world.store, vault.tenantId, (it) => it.part === 'cvc')
    const read = () => vault.call('GET', `/tokens/${id as string}`, { key: revealKey })
    assert.deepEqual(
      [(await read()).status, (await read()).json()['code']],
      [500, 'value_unreadable'],
    )
    vault.world.clock.pass(3_600_000)
    const { cvc: _, ...rest } = CARD
    assert.deepEqual((await read()).json()['data'], rest)
  })
})

for (const { path, table, kind, body, invoke } of DEFINITIONS()) {
  describe(`a damaged configuration at ${path}`, () => {
    test('is shown in the list as unreadable, beside the intact ones; by id it gets 500', async () => {
      const { vault, bad, good } = await twoDefinitions(path, table, body)
      const list = await vault.call('GET', path, { key: vault.managementKey })
      assert.equal(list.status, 200, list.text)
      const shown = list.json()['data'] as JsonObject[]
      const flags = shown.map((it) => [it['id'], it['name'], it['_extras']])
      assert.deepEqual(flags, [
        [good, 'good', undefined],
        [bad, 'bad', { unreadable: true }],
      ])
      assert.deepEqual(logged(vault, 'value_unreadable')[0]!['values'], [{ kind, id: bad }])
      for (const call of [
        () => vault.call('GET', `${path}/${bad}`, { key: vault.managementKey }),
        () => vault.call('PATCH', `${path}/${bad}`, patchOf(vault.managementKey)),
        () => invoke(vault, bad),
      ]) {
        const reply = await call()
        const answer = reply.json()
        const problem = (answer['proxy_error'] ?? answer) as JsonObject
        assert.deepEqual([reply.status, problem['code']], [500, 'value_unreadable'])
      }
    })

    test('can be deleted', async () => {
      const { vault, bad } = await twoDefinitions(path, table, body)
      const key = vault.managementKey
      assert.equal((await vault.call('DELETE', `${path}/${bad}`, { key })).status, 204)
      const list = await vault.call('GET', path, { key })
      assert.equal((list.json()['data'] as JsonObject[]).length, 1)
    })
  })
}

test('replacing a reactor repairs its damaged configuration', async () => {
  const [{ path, table, body }] = DEFINITIONS()
  const { vault, bad } = await twoDefinitions(path, table, body)
  const key = vault.managementKey
  const reply = await vault.call('PUT', `${path}/${bad}`, { key, body: { ...body, name: 'new' } })
  assert.equal(reply.status, 200, reply.text)
  assert.equal((await vault.call('GET', `${path}/${bad}`, { key })).status, 200)
})

test('a request whose remembered response is damaged is not carried out again', async () => {
  const { vault, key } = await tokenStage()
  const headers = { 'bt-idempotency-key': 'one' }
  const post = () =>
    vault.call('POST', '/tokens', { key, headers, body: { type: 'token', data: 'x' } })
  assert.equal((await post()).status, 201)
  await damage(vault.world.store, vault.tenantId, (it) => it.table === 'answers')
  const reply = await post()
  assert.deepEqual([reply.status, reply.json()['code']], [500, 'value_unreadable'])
  const list = await vault.call('GET', '/tokens', { key })
  assert.equal((list.json()['data'] as Json[]).length, 1)
})

test('a discarded remembered response gets value_unreadable, and its request is not carried out again', async () => {
  const { vault, key } = await tokenStage()
  const headers = { 'bt-idempotency-key': 'one' }
  const post = () =>
    vault.call('POST', '/tokens', { key, headers, body: { type: 'token', data: 'x' } })
  assert.equal((await post()).status, 201)
  const { store } = vault.world
  await damage(store, vault.tenantId, isIn('answers'))
  const [damaged] = (await envelopesOf(store, vault.tenantId)).filter(isIn('answers'))
  await discardDamaged(vault.world, vault.tenantId, damaged!)
  for (let n = 0; n < 2; n++) {
    const reply = await post()
    assert.deepEqual([reply.status, reply.json()['code']], [500, 'value_unreadable'])
  }
  const list = await vault.call('GET', '/tokens', { key })
  assert.equal((list.json()['data'] as Json[]).length, 1)
})

describe('a damaged job', () => {
  test('becomes a dead letter, is listed as unreadable, and other jobs continue', async () => {
    const stage = await callbackStage()
    const bad = await stage.invoke()
    const jobs = await damage(stage.vault.world.store, stage.vault.tenantId, isIn('jobs'))
    assert.equal(jobs.length, 1)
    await stage.invoke()
    await stage.work()
    assert.equal(stage.sent.length, 1)
    const [dead] = await stage.deadLetters()
    assert.deepEqual(
      [dead!['id'], dead!['failure'], dead!['_extras']],
      [bad, 'unreadable', { unreadable: true }],
    )
    await stage.pass(10)
    assert.equal(logged(stage.vault, 'job_failed').length, 1)
  })

  test('that is replayed after a repair counts as begun, and is not run a second time', async () => {
    const stage = await callbackStage()
    const id = await stage.invoke()
    const { store } = stage.vault.world
    await damage(store, stage.vault.tenantId, isIn('jobs'))
    await stage.work()
    await damage(store, stage.vault.tenantId, isIn('jobs'))
    assert.equal((await stage.manage('POST', `/callbacks/${id}/replay`)).status, 202)
    await stage.work()
    assert.equal(stage.runner.ran.length, 0)
    assert.equal(stage.sent.length, 1)
    assert.match(JSON.stringify(bodyOf(stage.sent[0]!)), /reactor_interrupted/)
    assert.deepEqual(await stage.deadLetters(), [])
  })

  test('with a damaged result is set aside with its destination, and is not sent', async () => {
    const stage = await callbackStage()
    stage.receive(() => ({ status: 500 }))
    await stage.invoke()
    await stage.work()
    await damage(stage.vault.world.store, stage.vault.tenantId, (it) => it.part === 'result')
    const sent = stage.sent.length
    await stage.pass(2)
    assert.equal(stage.sent.length, sent)
    const [dead] = await stage.deadLetters()
    assert.equal(dead!['destination'], new URL(RECEIVER).host)
  })

  test('is delivered after a rotation if only the signing secret was damaged', async () => {
    const stage = await callbackStage()
    const { vault, manage } = stage
    await manage('GET', '/callbacks/secret')
    await damage(vault.world.store, vault.tenantId, isIn('callback_secrets'))
    const id = await stage.invoke()
    await stage.work()
    assert.equal(stage.sent.length, 0)
    const read = await manage('GET', '/callbacks/secret')
    assert.deepEqual([read.status, read.json()['code']], [500, 'value_unreadable'])
    const rotated = await manage('POST', '/callbacks/secret/rotate')
    assert.equal(rotated.status, 200, rotated.text)
    assert.equal((rotated.json()['secrets'] as Json[]).length, 1)
    assert.equal((await manage('POST', `/callbacks/${id}/replay`)).status, 202)
    await stage.pass(CALLBACK_RETRIES)
    assert.equal(stage.sent.length, 1)
    assert.deepEqual(await stage.deadLetters(), [])
  })
})

function DEFINITIONS() {
  return [
    {
      path: '/reactors',
      table: 'reactors',
      kind: 'reactor_configuration' satisfies ValueKind,
      body: { code: 'module.exports = async () => ({})', configuration: {} },
      invoke: async (vault: StillVault, id: string) => {
        const key = await vault.keyFor({ permissions: ['token:use'] })
        return await vault.call('POST', `/reactors/${id}/react`, { key, body: { args: {} } })
      },
    },
    {
      path: '/proxies',
      table: 'proxies',
      kind: 'proxy_configuration' satisfies ValueKind,
      body: { destination_url: 'https://destination.example' },
      invoke: async (vault: StillVault, id: string) => {
        const key = await vault.keyFor({ permissions: ['token:use'] })
        const proxyKey = PROXY_KEYS.get(id)!
        return await vault.call('POST', '/proxy', { key, headers: { 'bt-proxy-key': proxyKey } })
      },
    },
  ] as const
}

const PROXY_KEYS = new Map<string, string>()

async function twoDefinitions(path: string, table: EnvelopeTable, body: JsonObject) {
  const { vault } = await tokenStage()
  const ids: string[] = []
  for (const name of ['bad', 'good']) {
    const key = vault.managementKey
    const made = await vault.call('POST', path, { key, body: { ...body, name } })
    assert.ok(made.status < 300, made.text)
    const { id, key: proxyKey } = made.json()
    ids.push(id as string)
    vault.world.clock.pass(1)
    if (typeof proxyKey === 'string') PROXY_KEYS.set(id as string, proxyKey)
  }
  const [bad, good] = ids as [string, string]
  await damage(vault.world.store, vault.tenantId, (it) => it.table === table && it.row === bad)
  return { vault, bad, good }
}

function patchOf(key: string) {
  const headers = { 'content-type': 'application/merge-patch+json' }
  return { key, headers, body: { name: 'other' } }
}

/** Damages the data of the token, and returns its envelope as it was. */
async function damageOne(vault: StillVault, id: Json | undefined): Promise<StoredEnvelope> {
  const [one] = await damage(
    vault.world.store,
    vault.tenantId,
    (it) => it.table === 'tokens' && it.id === id,
  )
  assert.ok(one !== undefined)
  return one
}

function isIn(table: EnvelopeTable): (it: StoredEnvelope) => boolean {
  return (it) => it.table === table
}

function logged({ world }: StillVault, event: string): JsonObject[] {
  const lines = world.logged as [event: string, error: unknown, fields?: JsonObject][]
  return lines.filter(([name]) => name === event).map(([, , fields]) => fields ?? {})
}
