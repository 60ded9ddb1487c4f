import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Reply } from '../kit/still-vault.ts'
import { pathsOf, REVEAL_ALL, tokenStage, type TokenStage } from '../kit/token-stage.ts'

const HOUR_MS = 60 * 60 * 1000
const NUMBER = '4242424242424242'
const CARD = { type: 'card', data: { number: NUMBER, expiration_month: 12, cvc: '123' } }
const ALL = ['token:create', 'token:read', 'token:update', 'token:delete']

interface UpdateTokenStage extends TokenStage {
  readonly create: (body: JsonObject) => Promise<string>
  readonly patch: (id: string, body: Json, by?: string) => Promise<Reply>
  /** As a reader to whom all is revealed sees it. */
  readonly show: (id: string) => Promise<JsonObject>
}

async function stage(options: Parameters<typeof tokenStage>[0] = {}): Promise<UpdateTokenStage> {
  const made = await tokenStage(options, { permissions: ALL })
  const { vault, key, revealKey } = made
  return {
    ...made,
    create: async (body) => {
      const reply = await vault.call('POST', '/tokens', { key, body })
      assert.equal(reply.status, 201, reply.text)
      return reply.json()['id'] as string
    },
    patch: (id, body, by = key) =>
      vault.call('PATCH', `/tokens/${encodeURIComponent(id)}`, { key: by, body }),
    show: async (id) => {
      const reply = await vault.call('GET', `/tokens/${id}`, { key: revealKey })
      assert.equal(reply.status, 200, reply.text)
      return reply.json()
    },
  }
}

describe('PATCH /tokens/{id}: 200', () => {
  test('data, mask and metadata are merged: what is named changes, null removes, the rest stays', async () => {
    const { create, patch, show } = await stage()
    const id = await create({
      data: { a: { b: 1, c: 2 }, d: [1, 2] },
      mask: { a: '{{ data.a.b }}', d: 'x' },
      metadata: { one: '1', two: '2' },
    })
    const reply = await patch(id, {
      data: { a: { b: 7, c: null, e: { f: null, g: 1 } }, d: [3], h: 'new' },
      mask: { d: null, h: '{{ data.h }}' },
      metadata: { one: null, three: '3' },
    })
    assert.equal(reply.status, 200, reply.text)
    const { data, mask, metadata } = await show(id)
    assert.deepEqual(data, { a: { b: 7, e: { g: 1 } }, d: [3], h: 'new' })
    assert.deepEqual(mask, { a: '{{ data.a.b }}', h: '{{ data.h }}' })
    assert.deepEqual(metadata, { two: '2', three: '3' })
    assert.deepEqual(reply.json()['data'], { a: 7, h: 'new' })
  })

  test('a member called __proto__ is a member', async () => {
    const { create, vault, key, show } = await stage()
    const id = await create({ data: { a: 1 } })
    const rawBody = '{"data":{"__proto__":{"a":2,"b":3}}}'
    assert.equal((await vault.call('PATCH', `/tokens/${id}`, { key, rawBody })).status, 200)
    assert.equal(JSON.stringify((await show(id))['data']), '{"a":1,"__proto__":{"a":2,"b":3}}')
  })

  test('what is no object takes the place of the old value', async () => {
    const { create, patch, show } = await stage()
    const id = await create({ data: { a: 1 }, mask: { a: 'x' } })
    await patch(id, { data: 'text', mask: '{{ data }}' })
    assert.equal((await show(id))['data'], 'text')
    await patch(id, { data: { b: { c: null } }, mask: null })
    const { data, mask } = await show(id)
    assert.deepEqual(data, { b: {} })
    assert.equal(mask, undefined)
  })

  test('containers, search indexes, fingerprint expression, expiry and the like are replaced', async () => {
    const { create, patch, show, stored, vault } = await stage()
    const id = await create({ data: 'x', containers: ['/a/'], search_indexes: ['{{ data }}'] })
    const body = {
      containers: ['/B/', '/c/'],
      search_indexes: ['{{ data }}1', '{{ data }}2'],
      fingerprint_expression: '{{ data }}',
      expires_at: '2031-01-01T00:00:00+02:00',
      encryption: { cek: { alg: 'x' } },
    }
    assert.equal((await patch(id, body)).status, 200)
    const shown = await show(id)
    assert.deepEqual(shown['containers'], ['/b/', '/c/'])
    assert.deepEqual(shown['search_indexes'], body.search_indexes)
    assert.equal(shown['fingerprint_expression'], '{{ data }}')
    assert.match(shown['fingerprint'] as string, /^\w{44}$/)
    assert.equal(shown['expires_at'], '2031-01-01T00:00:00.000+02:00'.replace('.000', ''))
    assert.deepEqual(shown['encryption'], body.encryption)
    const [before] = stored()
    const last = vault.world.committed.findLast((it) => it.kind === 'update-token')
    assert.equal(before!.indexes.length, 1)
    assert.equal(last!.token.indexes.length, 2)

    const nulls = Object.fromEntries(Object.keys(body).map((name) => [name, null]))
    assert.equal((await patch(id, nulls)).status, 200)
    const bare = await show(id)
    assert.deepEqual(bare['containers'], ['/general/high/'])
    for (const name of [...Object.keys(body), 'fingerprint'].slice(1)) {
      assert.equal(bare[name], undefined, name)
    }
  })

  test('the fingerprint follows the data, and stays where the caller does not ask for it again', async () => {
    const { create, patch, show } = await stage()
    const like = await create({ ...CARD, fingerprint_expression: '{{ data.number }}' })
    const id = await create({
      ...CARD,
      data: { number: '5555555555554444' },
      fingerprint_expression: '{{ data.number }}',
    })
    await patch(id, { data: { number: NUMBER } })
    assert.equal((await show(id))['fingerprint'], (await show(like))['fingerprint'])
    await patch(id, { metadata: { a: 'b' } })
    assert.equal((await show(id))['fingerprint'], (await show(like))['fingerprint'])
  })

  test('modified_by and modified_at say who and when; id, type and creation stay', async () => {
    const { create, patch, show, vault, applicationId } = await stage()
    const id = await create(CARD)
    const before = await show(id)
    assert.equal(before['modified_by'], undefined)
    vault.world.clock.pass(1500)
    const reply = await patch(id, { id: 'other', type: 'token', created_by: 'me', tenant_id: 'x' })
    assert.equal(reply.status, 200)
    const { modified_by: by, modified_at: at, ...rest } = await show(id)
    assert.deepEqual(rest, before)
    assert.equal(by, applicationId)
    assert.equal(at, '2026-03-01T12:00:01.500+00:00')
  })

  test('members in camel case are understood, as clients send them', async () => {
    const { create, patch, show } = await stage()
    const id = await create({ data: 'x' })
    await patch(id, { searchIndexes: ['{{ data }}'], fingerprintExpression: '{{ data }}' })
    const { search_indexes: indexes, fingerprint_expression: expression } = await show(id)
    assert.deepEqual([indexes, expression], [['{{ data }}'], '{{ data }}'])
  })

  test('nothing comes back to a key that belongs in pages: its application lists origins', async () => {
    const { create, patch, vault } = await stage()
    const id = await create({ ...CARD, deduplicate_token: true })
    const page = await vault.keyFor({
      type: 'public',
      permissions: ['token:update'],
      allowed_origins: ['https://shop.example'],
    })
    const reply = await patch(id, { data: { expiration_year: 2041 }, metadata: { a: 'b' } }, page)
    assert.equal(reply.status, 200, reply.text)
    const { data, fingerprint, metadata } = reply.json()
    assert.deepEqual([data, fingerprint, metadata], [undefined, undefined, { a: 'b' }])
    const shown = (await patch(id, {})).json()
    assert.equal((shown['data'] as JsonObject)['expiration_year'], 2041)
    assert.notEqual(shown['fingerprint'], undefined)
  })

  for (const [name, value] of Object.entries({
    mask: '{{ data.number }}',
    search_indexes: ['{{ data.number }}'],
    fingerprint_expression: '{{ data.number }}',
  })) {
    test(`400 if a key that belongs in pages changes ${name}`, async () => {
      const { create, patch, vault } = await stage()
      const id = await create(CARD)
      const page = await vault.keyFor({
        type: 'public',
        permissions: ['token:update'],
        allowed_origins: [],
      })
      for (const it of [value, null]) {
        const reply = await patch(id, { [name]: it }, page)
        assert.equal(reply.status, 400, reply.text)
        assert.deepEqual(Object.keys(reply.json()['errors'] as JsonObject), [name])
      }
    })
  }

  test('400 if a key that belongs in pages puts data under a mask that shows much of it', async () => {
    const { create, patch, vault } = await stage()
    const page = await vault.keyFor({
      type: 'public',
      permissions: ['token:update'],
      allowed_origins: [],
    })
    const change = { data: { expiration_year: 2041 } }
    for (const mask of ['{{ data.number }}', { a: ['{{ data.number | reveal_last: 5 }}'] }]) {
      const id = await create({ ...CARD, mask })
      const reply = await patch(id, change, page)
      assert.equal(reply.status, 400, reply.text)
      assert.deepEqual(Object.keys(reply.json()['errors'] as JsonObject), ['data'])
    }
    for (const mask of ['{{ data.number | reveal_last: 4 }}', { a: 'card' }]) {
      const id = await create({ ...CARD, mask })
      assert.equal((await patch(id, change, page)).status, 200)
    }
  })

  test('what comes back follows the rule for update, in the old and the new containers', async () => {
    const { create, patch, vault } = await stage()
    const rule = (priority: number, container: string, transform: string) => ({
      priority,
      container,
      transform,
      permissions: ['token:update'],
    })
    const id = await create({ ...CARD, containers: ['/a/'] })
    const shown = async (application: JsonObject, body: Json = {}): Promise<Json | undefined> => {
      const reply = await patch(id, body, await vault.keyFor(application))
      assert.equal(reply.status, 200, reply.text)
      return reply.json()['data']
    }
    const masked = { number: 'XXXXXXXXXXXX4242', expiration_month: 12 }
    assert.deepEqual(await shown({ permissions: ['token:update'] }), masked)
    assert.deepEqual(await shown({ type: 'public', permissions: ['token:update'] }), masked)
    assert.deepEqual(await shown({ rules: [rule(1, '/', 'reveal')] }), CARD.data)
    assert.equal(await shown({ rules: [rule(1, '/', 'redact')] }), undefined)
    // Moving it to where more is shown shows no more.
    const rules = [rule(1, '/a/', 'mask'), rule(2, '/b/', 'reveal')]
    assert.deepEqual(await shown({ rules }, { containers: ['/b/'] }), masked)
    assert.deepEqual(await shown({ rules }), CARD.data)
  })

  test('a new security code lives for its own hour, an old one for what is left of its', async () => {
    const { create, patch, show, vault } = await stage()
    const cvcOf = async (id: string): Promise<Json | undefined> =>
      ((await show(id))['data'] as JsonObject)['cvc']
    const [old, renewed, removed] = [await create(CARD), await create(CARD), await create(CARD)]
    vault.world.clock.pass(HOUR_MS / 2)
    await patch(old, { data: { expiration_month: 11 }, containers: ['/elsewhere/'] })
    await patch(renewed, { data: { cvc: '123' } })
    await patch(removed, { data: { cvc: null } })
    assert.deepEqual(
      [await cvcOf(old), await cvcOf(renewed), await cvcOf(removed)],
      ['123', '123', undefined],
    )
    vault.world.clock.pass(HOUR_MS / 2 - 1)
    assert.equal(await cvcOf(old), '123')
    vault.world.clock.pass(1)
    assert.equal(await cvcOf(old), undefined)
    assert.equal(await cvcOf(renewed), '123')
    await patch(old, { data: { expiration_month: 10 } })
    vault.world.clock.pass(HOUR_MS / 2 - 1)
    assert.equal(await cvcOf(old), undefined)
    assert.equal(await cvcOf(renewed), '123')
    vault.world.clock.pass(1)
    assert.equal(await cvcOf(renewed), undefined)
  })

  test('an index of a card that gives nothing any more is left out, unless it is asked for again', async () => {
    const { create, patch } = await stage()
    const search_indexes = ['{{ data.number }}', '{{ data.expiration_month }}']
    const card = await create({ ...CARD, search_indexes })
    const gone = { data: { expiration_month: null } }
    assert.equal((await patch(card, { ...gone, search_indexes })).status, 400)
    assert.equal((await patch(card, gone)).status, 200)
    assert.equal((await patch(card, { metadata: { still: 'changes' } })).status, 200)
    const other = await create({ data: { a: '1' }, search_indexes: ['{{ data.a }}'] })
    assert.equal((await patch(other, { data: { a: null } })).status, 400)
  })

  test('with an idempotency key it is done once; a security code is not kept with the answer', async () => {
    const { create, show, vault } = await stage()
    const id = await create(CARD)
    const rule = { ...REVEAL_ALL, permissions: ['token:update'] }
    const key = await vault.keyFor({ rules: [rule] })
    const headers = { 'bt-idempotency-key': 'one' }
    const send = (month: number): Promise<Reply> =>
      vault.call('PATCH', `/tokens/${id}`, {
        key,
        headers,
        body: { data: { expiration_month: month } },
      })
    const first = await send(1)
    assert.deepEqual(first.json()['data'], { ...CARD.data, expiration_month: 1 })
    const second = await send(2)
    assert.deepEqual(second.json()['data'], { number: NUMBER, expiration_month: 1 })
    assert.equal(((await show(id))['data'] as JsonObject)['expiration_month'], 1)
  })

  test('of updates at the same time none is lost', async () => {
    const { create, patch, show } = await stage()
    const id = await create({ data: {} })
    const names = Array.from({ length: 40 }, (_, n) => `n${n}`)
    const replies = await Promise.all(names.map((name) => patch(id, { data: { [name]: name } })))
    assert.deepEqual(new Set(replies.map((it) => it.status)), new Set([200]))
    assert.deepEqual(Object.keys((await show(id))['data'] as JsonObject).sort(), names.toSorted())
  })
})

describe('PATCH /tokens/{id}: deduplication', () => {
  const UNIQUE = { deduplicate_token: true, fingerprint_expression: '{{ data }}' }

  test('an update that makes a duplicate changes nothing and answers with the other', async () => {
    const { create, patch, show } = await stage()
    const one = await create({ data: 'one', ...UNIQUE, metadata: { n: '1' } })
    const two = await create({ data: 'two', ...UNIQUE })
    const reply = await patch(two, { data: 'one', metadata: { n: '2' } })
    assert.equal(reply.status, 200)
    assert.equal(reply.json()['id'], one)
    assert.deepEqual(reply.json()['metadata'], { n: '1' })
    assert.deepEqual(reply.json()['_extras'], { deduplicated: true })
    const { data, metadata } = await show(two)
    assert.deepEqual([data, metadata], ['two', undefined])
  })

  test('a caller that may not read the other sees five members of it', async () => {
    const { create, patch, vault } = await stage()
    const one = await create({ data: 'one', ...UNIQUE, metadata: { n: '1' } })
    const two = await create({ data: 'two', ...UNIQUE })
    const key = await vault.keyFor({ permissions: ['token:update'] })
    const reply = await patch(two, { data: 'one' }, key)
    assert.equal(reply.json()['id'], one)
    assert.deepEqual(Object.keys(reply.json()), [
      'id',
      'tenant_id',
      'type',
      'fingerprint',
      'containers',
      '_extras',
    ])
  })

  test('turned on, it gives a fingerprint, and then there may be a duplicate', async () => {
    const { create, patch } = await stage()
    const one = await create({ data: 'one', deduplicate_token: true })
    const two = await create({ data: 'one' })
    assert.equal((await patch(two, { deduplicate_token: true })).json()['id'], one)
  })

  test('where duplicates are already, either can be changed', async () => {
    const { create, patch, show } = await stage()
    const expression = { fingerprint_expression: '{{ data }}' }
    const ids = [
      await create({ data: 'one', ...expression }),
      await create({ data: 'one', ...expression }),
    ]
    for (const id of ids) {
      assert.equal((await patch(id, { deduplicate_token: true })).json()['id'], id)
      assert.equal((await patch(id, { metadata: { a: 'b' } })).json()['id'], id)
      assert.deepEqual((await show(id))['metadata'], { a: 'b' })
    }
  })

  test('null leaves it to the tenant', async () => {
    const { create, patch } = await stage({ settings: { deduplicateTokens: true } })
    const one = await create({ data: 'one', deduplicate_token: false })
    const two = await create({ data: 'one', deduplicate_token: false })
    assert.equal((await patch(two, { deduplicate_token: false })).json()['id'], two)
    const duplicate = await create({ data: 'two' })
    assert.equal(
      (await patch(one, { data: 'two', deduplicate_token: null })).json()['id'],
      duplicate,
    )
  })
})

describe('PATCH /tokens/{id}: refusals', () => {
  test('400: what the merged token may not be, with the member at fault; nothing changes', async () => {
    const { create, patch, show } = await stage()
    const id = await create({ ...CARD, metadata: { a: 'b' } })
    const before = await show(id)
    for (const [body, paths] of [
      [{ data: { number: '4242424242424241' } }, ['data.number']],
      [{ data: { number: null } }, ['data.number']],
      [{ data: null }, ['data']],
      [{ data: 'text' }, ['data']],
      [{ metadata: { a: 1 } }, ['metadata.a']],
      [{ containers: [] }, ['containers']],
      [{ containers: ['no path'] }, ['containers[0]']],
      [{ expires_at: '2020-01-01' }, ['expires_at']],
      [{ mask: '{{ data.number | nonsense }}' }, ['mask']],
      [{ search_indexes: ['{{ data.nothing }}'] }, ['search_indexes[0]']],
      [{ fingerprint_expression: '{{' }, ['fingerprint_expression']],
      [[], ['error']],
      ['text', ['error']],
      [null, ['error']],
    ] as const) {
      const reply = await patch(id, body as Json)
      assert.equal(reply.status, 400, JSON.stringify(body))
      assert.deepEqual(pathsOf(reply), paths, reply.text)
      assert.ok(!reply.text.includes('4242'), reply.text)
    }
    assert.deepEqual(await show(id), before)
  })

  test('400: data that grows beyond what can be sent', async () => {
    const { create, patch, show } = await stage()
    const id = await create({ data: { a: 'x'.repeat(3_000_000) } })
    const reply = await patch(id, { data: { b: 'x'.repeat(3_000_000) } })
    assert.equal(reply.status, 400)
    assert.deepEqual(pathsOf(reply), ['data'])
    assert.deepEqual(Object.keys((await show(id))['data'] as JsonObject), ['a'])
  })

  test('403: a container that it is in, or is to be in, and that the caller may not update', async () => {
    const { create, patch, show, vault } = await stage()
    const rule = (container: string) => ({
      priority: 1,
      container,
      transform: 'mask',
      permissions: ['token:update'],
    })
    const id = await create({ data: 'x', containers: ['/a/', '/b/'] })
    const onlyA = await vault.keyFor({ rules: [rule('/a/')] })
    assert.equal((await patch(id, { metadata: { a: 'b' } }, onlyA)).status, 403)
    assert.equal((await patch(id, { containers: ['/a/'] }, onlyA)).status, 403)
    await patch(id, { containers: ['/a/'] })
    assert.equal((await patch(id, { containers: ['/a/', '/b/'] }, onlyA)).status, 403)
    assert.equal((await patch(id, { metadata: { a: 'b' } }, onlyA)).status, 200)
    assert.deepEqual((await show(id))['containers'], ['/a/'])
  })

  test('404: expired', async () => {
    const { create, patch, vault, key } = await stage()
    const id = await create({ data: 'x', expires_at: '2026-03-01T12:00:01Z' })
    vault.world.clock.pass(999)
    assert.equal((await patch(id, {})).status, 200)
    vault.world.clock.pass(1)
    const body = { expires_at: null }
    assert.equal((await patch(id, body)).status, 404)
    assert.equal((await vault.call('DELETE', `/tokens/${id}`, { key })).status, 404)
  })

  for (const type of ['application/json', 'text/plain', 'application/json-patch+json', undefined]) {
    test(`415: ${type ?? 'no content type'}`, async () => {
      const { create, vault, key } = await stage()
      const id = await create({ data: 'x' })
      const reply = await vault.servers.next().inject({
        method: 'PATCH',
        url: `/tokens/${id}`,
        headers: { 'bt-api-key': key, ...(type === undefined ? {} : { 'content-type': type }) },
        payload: Buffer.from('{}'),
      })
      assert.equal(reply.statusCode, 415)
    })
  }
})

describe('DELETE /tokens/{id}', () => {
  test('204 with no body; then it is not there, and its id is free', async () => {
    const { create, vault, key } = await stage()
    await create({ id: 'my own', data: 'x' })
    const path = '/tokens/my%20own'
    const reply = await vault.call('DELETE', path, { key })
    assert.deepEqual([reply.status, reply.text], [204, ''])
    for (const method of ['GET', 'DELETE'] as const) {
      assert.equal((await vault.call(method, path, { key })).status, 404)
    }
    await create({ id: 'my own', data: 'y' })
  })

  test('403: one of its containers is not the caller’s to delete from', async () => {
    const { create, vault, show } = await stage()
    const permissions = ['token:delete']
    const rule = { priority: 1, container: '/a/', transform: 'mask', permissions }
    const key = await vault.keyFor({ rules: [rule] })
    const id = await create({ data: 'x', containers: ['/a/', '/b/'] })
    assert.equal((await vault.call('DELETE', `/tokens/${id}`, { key })).status, 403)
    assert.equal((await show(id))['data'], 'x')
  })

  test('of many at the same time one gets 204, the others 404', async () => {
    const { create, vault, key } = await stage()
    const id = await create({ data: 'x' })
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => vault.call('DELETE', `/tokens/${id}`, { key })),
    )
    const statuses = replies.map((it) => it.status)
    assert.equal(statuses.filter((it) => it === 204).length, 1)
    assert.equal(statuses.filter((it) => it === 404).length, 9)
  })
})
