import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { shapeOf, STILL_INSTANT, tokenStage, type TokenStage } from '../kit/token-stage.ts'

const ON = { settings: { deduplicateTokens: true } }

/** A card whose number makes it a duplicate of the others; the year tells them apart. */
function card(year: number, options: JsonObject = {}): JsonObject {
  return { type: 'card', data: { number: '4242424242424242', expiration_year: year }, ...options }
}

async function idsOf(stage: TokenStage, payload: Json[]): Promise<Json[]> {
  const entries = (await stage.tokenize(payload)) as Json[]
  return entries.map((it) => (typeof it === 'string' ? it : (it as JsonObject)['id']!))
}

describe('with deduplicate_token', () => {
  test('a second token gives way to the first: same id, said in _extras', async () => {
    const stage = await tokenStage()
    const first = (await stage.tokenize(card(2030, { deduplicate_token: true }))) as JsonObject
    assert.equal(first['_extras'], undefined)
    const second = (await stage.tokenize(card(2031, { deduplicate_token: true }))) as JsonObject
    assert.equal(second['id'], first['id'])
    assert.deepEqual(second['_extras'], { deduplicated: true })
    assert.equal(stage.stored().length, 1)
  })

  test('the answer describes the token that is there, not the one that was sent', async () => {
    const stage = await tokenStage()
    const metadata = { by: 'first' }
    await stage.tokenize(card(2030, { deduplicate_token: true, metadata }))
    const duplicate = { deduplicate_token: true, metadata: { by: 'second' }, mask: '{{ data }}' }
    const described = {
      id: '<uuid>',
      tenant_id: '<tenant>',
      type: 'card',
      metadata,
      fingerprint: '<fingerprint>',
      fingerprint_expression: '{{ data.number }}',
      containers: ['/pci/high/'],
      created_by: '<application>',
      created_at: STILL_INSTANT,
      _extras: { deduplicated: true },
    }
    const masked = { number: 'XXXXXXXXXXXX4242', expiration_year: 2030 }
    stage.vault.world.clock.pass(1000)
    const atRoot = (await stage.tokenize(card(2031, duplicate))) as JsonObject
    assert.deepEqual(shapeOf(stage, { ...atRoot, fingerprint: '<fingerprint>' }), {
      ...described,
      mask: masked,
    })
    const [inside] = (await stage.tokenize([card(2031, duplicate)])) as JsonObject[]
    assert.deepEqual(shapeOf(stage, { ...inside, fingerprint: '<fingerprint>' }), {
      ...described,
      data: masked,
    })
  })

  test('no raw data is in the answer, even if the duplicate is revealed to the caller', async () => {
    const rule = { priority: 1, container: '/', transform: 'reveal' }
    const permissions = ['token:create', 'token:read']
    const stage = await tokenStage({}, { rules: [{ ...rule, permissions }] })
    const value = { type: 'token', data: 'plain-secret', deduplicate_token: true }
    await stage.tokenize(value)
    for (const payload of [value, [value]]) {
      const reply = await stage.tryTokenize(payload)
      assert.ok(reply.text.includes('"deduplicated":true'))
      assert.ok(!reply.text.includes('plain-secret'), reply.text)
    }
  })

  test('a caller who may not read the duplicate learns five members of it and no more', async () => {
    const stage = await tokenStage({}, { permissions: ['token:create'] })
    const options = { deduplicate_token: true, metadata: { by: 'first' } }
    const first = (await stage.tokenize(card(2030, options))) as JsonObject
    const limited = {
      id: first['id'],
      tenant_id: stage.vault.tenantId,
      type: 'card',
      fingerprint: first['fingerprint'],
      containers: ['/pci/high/'],
      _extras: { deduplicated: true },
    }
    assert.deepEqual(await stage.tokenize(card(2030, options)), limited)
    assert.deepEqual(await stage.tokenize([card(2030, options)]), [limited])
  })

  test('a duplicate in containers that the caller may not read shows its containers, not its data', async () => {
    const rule = (container: string, priority: number, permission: string): JsonObject => ({
      priority,
      container,
      transform: 'mask',
      permissions: [permission],
    })
    const rules = [rule('/', 1, 'token:create'), rule('/open/', 2, 'token:read')]
    const stage = await tokenStage({}, { rules })
    await stage.tokenize(card(2030, { deduplicate_token: true, containers: ['/closed/'] }))
    const duplicate = card(2030, { deduplicate_token: true, containers: ['/open/'] })
    const [entry] = (await stage.tokenize([duplicate])) as JsonObject[]
    assert.deepEqual(entry!['containers'], ['/closed/'])
    assert.equal(entry!['data'], undefined)
  })

  test('duplicates within one payload share the token of the first', async () => {
    const stage = await tokenStage()
    const [first, second, third] = await idsOf(stage, [
      card(2030, { deduplicate_token: true }),
      'x',
      card(2031, { deduplicate_token: true }),
    ])
    assert.equal(first, third)
    assert.notEqual(first, second)
    assert.equal(stage.stored().length, 2)
  })

  test('a duplicate that asked for no deduplication is a duplicate too', async () => {
    const stage = await tokenStage()
    const by = { fingerprint_expression: '{{ data.number }}' }
    const [first] = await idsOf(stage, [card(2030, by)])
    const [second] = await idsOf(stage, [card(2031, { deduplicate_token: true })])
    assert.equal(second, first)
  })

  test('tokens of another type, value or tenant are no duplicates', async () => {
    const stage = await tokenStage()
    const duplicate = { deduplicate_token: true }
    const ids = await idsOf(stage, [
      { type: 'card_number', data: '4242424242424242', ...duplicate },
      { type: 'token', data: '4242424242424242', ...duplicate },
      { type: 'token', data: 4242424242424242, ...duplicate, metadata: { a: 'b' } },
      { type: 'token', data: 'x', ...duplicate },
    ])
    assert.equal(new Set(ids.slice(0, 2)).size, 2)
    assert.equal(new Set([ids[0], ids[1], ids[3]]).size, 3)
    const management = await stage.vault.addTenant('other')
    const application = { type: 'private', name: 'x', permissions: ['token:create'] }
    const made = await stage.vault.call('POST', '/applications', {
      key: management,
      body: application,
    })
    const theirs = await stage.tokenize(
      [{ type: 'card_number', data: '4242424242424242', ...duplicate }],
      made.json()['key'] as string,
    )
    assert.notEqual((theirs as JsonObject[])[0]!['id'], ids[0])
  })

  test('a duplicate that has expired is ignored', async () => {
    const stage = await tokenStage()
    const duplicate = { deduplicate_token: true }
    const [first] = await idsOf(stage, [
      card(2030, { ...duplicate, expires_at: '2026-03-01T13:00:00Z' }),
    ])
    stage.vault.world.clock.pass(59 * 60 * 1000)
    assert.deepEqual(await idsOf(stage, [card(2030, duplicate)]), [first])
    stage.vault.world.clock.pass(60 * 1000)
    const [second] = await idsOf(stage, [card(2030, duplicate)])
    assert.notEqual(second, first)
    assert.deepEqual(await idsOf(stage, [card(2030, duplicate)]), [second])
  })

  test('an expression that gives nothing makes no token a duplicate', async () => {
    const stage = await tokenStage()
    const options = { deduplicate_token: true, fingerprint_expression: '{{ data.none }}' }
    const ids = await idsOf(stage, [card(2030, options), card(2030, options)])
    assert.equal(new Set(ids).size, 2)
  })

  test('the own id of the second token is not used', async () => {
    const stage = await tokenStage()
    const [first] = await idsOf(stage, [card(2030, { deduplicate_token: true, id: 'first' })])
    assert.deepEqual(await idsOf(stage, [card(2030, { deduplicate_token: true, id: 'other' })]), [
      first,
    ])
  })

  test('a duplicate that is deleted in the middle of a request is still the duplicate of all of it', async () => {
    let finds = 0
    const stage = await tokenStage({
      change: (world) => {
        const { tokens } = world.store
        const findByFingerprint: typeof tokens.findByFingerprint = async (...question) => {
          finds += 1
          return finds <= 2 ? await tokens.findByFingerprint(...question) : null
        }
        return { ...world, store: { ...world.store, tokens: { ...tokens, findByFingerprint } } }
      },
    })
    const duplicate = card(2030, { deduplicate_token: true })
    const [first] = await idsOf(stage, [duplicate])
    assert.deepEqual(await idsOf(stage, [duplicate, duplicate, duplicate]), [first, first, first])
    assert.equal(finds, 2)
  })

  test('two requests that looked for a duplicate before either stored one make one token', async () => {
    let looked = 0
    const both = Promise.withResolvers<void>()
    const stage = await tokenStage({
      change: (world) => {
        const { tokens } = world.store
        const findByFingerprint: typeof tokens.findByFingerprint = async (...question) => {
          const found = await tokens.findByFingerprint(...question)
          looked += 1
          if (looked === 2) both.resolve()
          return found
        }
        const commit: typeof world.store.commit = async (tenantId, changes) => {
          if (changes.some((it) => it.kind === 'insert-tokens')) await both.promise
          return await world.store.commit(tenantId, changes)
        }
        const store = { ...world.store, commit, tokens: { ...tokens, findByFingerprint } }
        return { ...world, store }
      },
    })
    const payload = [card(2030, { deduplicate_token: true })]
    const [one, other] = await Promise.all([idsOf(stage, payload), idsOf(stage, payload)])
    assert.deepEqual(one, other)
    assert.equal(looked, 3)
  })

  describe('at POST /tokens', () => {
    const body = card(2030, { deduplicate_token: true, metadata: { by: 'first' } })
    const post = async (stage: TokenStage, key = stage.key): Promise<JsonObject> => {
      const reply = await stage.vault.call('POST', '/tokens', { key, body })
      assert.equal(reply.status, 201)
      return reply.json()
    }

    test('a caller who may not read the duplicate learns five members of it and no more', async () => {
      const stage = await tokenStage({}, { permissions: ['token:create'] })
      const first = await post(stage)
      assert.deepEqual(await post(stage), {
        id: first['id'],
        tenant_id: stage.vault.tenantId,
        type: 'card',
        fingerprint: first['fingerprint'],
        containers: ['/pci/high/'],
        _extras: { deduplicated: true },
      })
    })

    const shown: [transform: string, data: Json | undefined][] = [
      ['redact', undefined],
      ['mask', { number: 'XXXXXXXXXXXX4242', expiration_year: 2030 }],
      ['reveal', body['data']],
    ]
    for (const [transform, data] of shown) {
      test(`a caller sees the duplicate as the rule that says ${transform} for token:read shows it`, async () => {
        const stage = await tokenStage()
        const first = await post(stage)
        const rule = { priority: 1, container: '/', transform, permissions: ['token:read'] }
        const key = await stage.vault.keyFor({ permissions: ['token:create'], rules: [rule] })
        const { data: _data, ...rest } = first
        assert.deepEqual(await post(stage, key), {
          ...rest,
          ...(data === undefined ? {} : { data }),
          _extras: { deduplicated: true },
        })
      })
    }
  })
})

describe('in a tenant that deduplicates', () => {
  test('equal plain values share a token, across and within payloads', async () => {
    const stage = await tokenStage(ON)
    const [a, b, c] = await idsOf(stage, ['x', 'y', 'x'])
    assert.equal(a, c)
    assert.notEqual(a, b)
    assert.deepEqual(await idsOf(stage, ['y', 'x']), [b, a])
  })

  test('values of other types that read alike are as equal as their fingerprints', async () => {
    const stage = await tokenStage(ON)
    const [text, number] = await idsOf(stage, ['1', 1])
    assert.equal(text, number)
  })

  test('deduplicate_token: false makes a token of its own', async () => {
    const stage = await tokenStage(ON)
    const [first] = await idsOf(stage, [card(2030)])
    const ids = await idsOf(stage, [card(2030, { deduplicate_token: false }), card(2030)])
    assert.notEqual(ids[0], first)
    assert.equal(ids[1], first)
  })

  test('the answer of POST /tokens is 201 and says so', async () => {
    const stage = await tokenStage(ON)
    const [first] = await idsOf(stage, ['x'])
    const body = { type: 'token', data: 'x' }
    const reply = await stage.vault.call('POST', '/tokens', { key: stage.key, body })
    assert.equal(reply.status, 201)
    assert.equal(reply.json()['id'], first)
    assert.deepEqual(reply.json()['_extras'], { deduplicated: true })
  })
})
