import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { CVC_LIFETIME_MS } from '../../src/base/limits.ts'
import type { Reply } from '../kit/still-vault.ts'
import {
  pathsOf,
  REVEAL_ALL,
  shapeOf,
  STILL_INSTANT,
  tokenStage,
  type TokenStage,
} from '../kit/token-stage.ts'

const CARD: JsonObject = {
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' },
}
const CARD_MASK = {
  number: '{{ data.number | reveal_last: 4 }}',
  expiration_month: '{{ data.expiration_month }}',
  expiration_year: '{{ data.expiration_year }}',
}
const MASKED_CARD = { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 }

const post = (stage: TokenStage, body: Json, key = stage.key): Promise<Reply> =>
  stage.vault.call('POST', '/tokens', { key, body })

const get = (stage: TokenStage, id: Json | undefined, key = stage.key): Promise<Reply> =>
  stage.vault.call('GET', `/tokens/${encodeURIComponent(id as string)}`, { key })

/** Makes a token and returns its id. */
async function made(stage: TokenStage, body: JsonObject): Promise<string> {
  const reply = await post(stage, body)
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

/** A key with one rule. */
function keyWith(
  stage: TokenStage,
  transform: string,
  permission: string,
  container = '/',
): Promise<string> {
  const rule = { priority: 1, container, transform, permissions: [permission] }
  return stage.vault.keyFor({ rules: [rule] })
}

describe('POST /tokens answers', () => {
  test('201 with the token, its data masked, its mask as expressions', async () => {
    const stage = await tokenStage()
    const reply = await post(stage, {
      type: 'token',
      data: 'Sensitive Value',
      mask: '{{ data | reveal_last: 4 }}',
    })
    assert.equal(reply.status, 201)
    assert.deepEqual(shapeOf(stage, reply.json()), {
      id: '<uuid>',
      tenant_id: '<tenant>',
      type: 'token',
      data: 'XXXXXXXXXXXalue',
      mask: '{{ data | reveal_last: 4 }}',
      containers: ['/general/high/'],
      created_by: '<application>',
      created_at: STILL_INSTANT,
      _extras: { deduplicated: false },
    })
  })

  test('201 with a card, masked by its default mask', async () => {
    const stage = await tokenStage()
    const reply = await post(stage, CARD)
    assert.deepEqual(shapeOf(stage, reply.json()), {
      id: '<uuid>',
      tenant_id: '<tenant>',
      type: 'card',
      data: MASKED_CARD,
      mask: CARD_MASK,
      fingerprint_expression: '{{ data.number }}',
      containers: ['/pci/high/'],
      created_by: '<application>',
      created_at: STILL_INSTANT,
      _extras: { deduplicated: false },
    })
  })

  test('with everything that was sent beside the data', async () => {
    const stage = await tokenStage()
    const sent = {
      id: 'my-token',
      metadata: { a: 'b' },
      search_indexes: ['{{ data }}'],
      fingerprint_expression: '{{ data }}',
      containers: ['/a/', '/b/'],
      expires_at: '2030-08-26T19:23:57-07:00',
      encryption: { cek: { key: 'x' } },
    }
    const answer = (await post(stage, { type: 'token', data: 'x', ...sent })).json()
    for (const [member, value] of Object.entries(sent)) assert.deepEqual(answer[member], value)
    assert.equal(typeof answer['fingerprint'], 'string')
  })

  test('with a Location that is the address of the token', async () => {
    const stage = await tokenStage()
    const headers = { host: 'vault.example:8443' }
    for (const id of ['plain-id', 'an id with spaces', 'ada@example.org', 'ключ😀']) {
      const body = { type: 'token', data: 'x', id }
      const reply = await stage.vault.call('POST', '/tokens', { key: stage.key, body, headers })
      const location = reply.headers['location']!
      assert.equal(location, `http://vault.example:8443/tokens/${encodeURIComponent(id)}`)
      const read = await stage.vault.call('GET', new URL(location).pathname, { key: stage.key })
      assert.equal(read.json()['id'], id)
    }
  })

  test('with a generic token when no type is named', async () => {
    const stage = await tokenStage()
    for (const body of [{ data: 'x' }, { data: 'x', type: null }]) {
      const reply = await post(stage, body)
      assert.equal(reply.status, 201, reply.text)
      assert.equal(reply.json()['type'], 'token')
    }
  })

  const shown: [transform: string, data: Json | undefined][] = [
    ['redact', undefined],
    ['mask', MASKED_CARD],
    ['reveal', CARD['data']],
  ]
  for (const [transform, data] of shown) {
    test(`the data as a rule that says ${transform} for token:create shows it`, async () => {
      const stage = await tokenStage()
      const key = await keyWith(stage, transform, 'token:create')
      const reply = await post(stage, CARD, key)
      assert.deepEqual(reply.json()['data'], data)
      assert.deepEqual(reply.json()['mask'], CARD_MASK)
    })
  }

  test('no data when there is no mask to show it through', async () => {
    const stage = await tokenStage()
    const reply = await post(stage, { type: 'token', data: 'plain-secret' })
    assert.ok(!('data' in reply.json()))
    assert.ok(!reply.text.includes('plain-secret'))
  })

  test('privacy when the operator wants it shown, and not otherwise', async () => {
    const privacy = { classification: 'pci', impact_level: 'high', restriction_policy: 'mask' }
    const on = await tokenStage({ privacyShown: true })
    assert.deepEqual((await post(on, CARD)).json()['privacy'], privacy)
    assert.deepEqual((await get(on, await made(on, CARD))).json()['privacy'], privacy)
    assert.ok(!('privacy' in (await post(await tokenStage(), CARD)).json()))
  })
})

describe('POST /tokens refuses', () => {
  const refused: [name: string, body: Json, code: string, ...paths: string[]][] = [
    ['no data', { type: 'token' }, 'token_data_invalid', 'data'],
    ['null for data', { type: 'token', data: null }, 'token_data_invalid', 'data'],
    ['an unknown type', { type: 'x', data: 'y' }, 'token_type_unknown', 'type'],
    ['a type that is no text', { type: 1, data: 'y' }, 'token_type_unknown', 'type'],
    [
      'a card that is none',
      { type: 'card', data: { number: '1' } },
      'token_data_invalid',
      'data.number',
    ],
    [
      'an expression that is none',
      { data: 'x', mask: { a: '{{' } },
      'expression_invalid',
      'mask.a',
    ],
    ['several wrong options', { data: 'x', id: 1, metadata: 1 }, 'token_invalid', 'id', 'metadata'],
    ['a list', [], 'token_invalid', 'error'],
    ['a text', 'x', 'token_invalid', 'error'],
  ]
  for (const [name, body, code, ...paths] of refused) {
    test(`${name}: 400`, async () => {
      const stage = await tokenStage()
      const reply = await post(stage, body)
      assert.equal(reply.status, 400)
      assert.equal(reply.json()['code'], code)
      assert.deepEqual(pathsOf(reply), paths)
      assert.deepEqual(stage.stored(), [])
    })
  }

  test('an id that is taken: 409', async () => {
    const stage = await tokenStage()
    await made(stage, { data: 'x', id: 'taken' })
    const reply = await post(stage, { data: 'y', id: 'taken' })
    assert.equal(reply.status, 409)
    assert.equal(reply.json()['code'], 'token_id_taken')
    assert.equal(await stage.reveal('taken'), 'x')
  })

  test('containers that the caller may not create in: 403', async () => {
    const stage = await tokenStage()
    const key = await keyWith(stage, 'mask', 'token:create', '/a/')
    assert.equal((await post(stage, { data: 'x' }, key)).status, 403)
    assert.equal((await post(stage, { data: 'x', containers: ['/a/', '/b/'] }, key)).status, 403)
    assert.deepEqual(stage.stored(), [])
    assert.equal((await post(stage, { data: 'x', containers: ['/a/'] }, key)).status, 201)
  })
})

describe('GET /tokens/{id} answers', () => {
  test('200 with the token as it was made, its data masked, its mask as expressions', async () => {
    const stage = await tokenStage()
    const answer = (await post(stage, CARD)).json()
    const reply = await get(stage, answer['id'])
    assert.equal(reply.status, 200)
    assert.deepEqual(reply.json(), answer)
  })

  const shown: [transform: string, data: Json | undefined][] = [
    ['redact', undefined],
    ['mask', MASKED_CARD],
    ['reveal', CARD['data']],
  ]
  for (const [transform, data] of shown) {
    test(`the data as a rule that says ${transform} for token:read shows it`, async () => {
      const stage = await tokenStage()
      const id = await made(stage, CARD)
      const reply = await get(stage, id, await keyWith(stage, transform, 'token:read'))
      assert.equal(reply.status, 200)
      assert.deepEqual(reply.json()['data'], data)
      assert.deepEqual(reply.json()['mask'], CARD_MASK)
    })
  }

  test('the data as the first rule that covers its container shows it', async () => {
    const stage = await tokenStage()
    const id = await made(stage, CARD)
    const rules = (...transforms: [container: string, transform: string][]): JsonObject => ({
      rules: transforms.map(([container, transform], at) => {
        return { priority: at + 1, container, transform, permissions: ['token:read'] }
      }),
    })
    const dataFor = async (application: JsonObject): Promise<Json | undefined> =>
      (await get(stage, id, await stage.vault.keyFor(application))).json()['data']
    assert.deepEqual(await dataFor(rules(['/pci/high/', 'mask'], ['/', 'reveal'])), MASKED_CARD)
    assert.deepEqual(await dataFor(rules(['/pci/low/', 'mask'], ['/', 'reveal'])), CARD['data'])
    assert.equal(await dataFor(rules(['/', 'redact'], ['/pci/high/', 'reveal'])), undefined)
  })

  test('a mask of the type without what is not there', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { type: 'card', data: { number: '4242424242424242' } })
    assert.deepEqual((await get(stage, id)).json()['data'], { number: 'XXXXXXXXXXXX4242' })
  })

  test('no data where the mask comes to nothing, alone, in a list and in a payload', async () => {
    const stage = await tokenStage()
    const token = { data: { a: 1 }, mask: '{{ data.b }}' }
    const id = await made(stage, token)
    const payload = { nested: { type: 'token', ...token } }
    const { nested } = (await stage.tokenize(payload)) as { nested: JsonObject }
    const list = await stage.vault.call('GET', '/tokens', { key: stage.key })
    const listed = list.json()['data'] as JsonObject[]
    const shown = [(await get(stage, id)).json(), nested, ...listed]
    assert.deepEqual(
      shown.map((it) => 'data' in it),
      [false, false, false, false],
    )
  })

  test('the security code for an hour, and from then on as if there had been none', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { ...CARD, mask: { code: '{{ data.cvc }}' } })
    const { cvc: _cvc, ...rest } = CARD['data'] as JsonObject
    stage.vault.world.clock.pass(CVC_LIFETIME_MS - 1)
    assert.deepEqual(await stage.reveal(id), CARD['data'])
    assert.deepEqual((await get(stage, id)).json()['data'], { code: '123' })
    stage.vault.world.clock.pass(1)
    assert.deepEqual(await stage.reveal(id), rest)
    assert.deepEqual((await get(stage, id)).json()['data'], { code: null })
    assert.equal((await get(stage, id)).status, 200)
  })

  test('nothing that outlives the security code is made of it', async () => {
    const stage = await tokenStage()
    const make = async (body: JsonObject, cvc = '123') =>
      await stage.vault.call('POST', '/tokens', {
        key: stage.key,
        body: { ...CARD, data: { number: '4242424242424242', cvc }, ...body },
      })
    for (const [member, value] of [
      ['search_indexes', ['{{ data.number }}', '{{ data.cvc }}']],
      ['id', '{{ data.cvc }}'],
    ] as const) {
      const reply = await make({ [member]: value as Json })
      assert.equal(reply.status, 400, reply.text)
    }
    const fingerprint = async (expression: string, cvc: string): Promise<Json | undefined> =>
      (await make({ fingerprint_expression: expression }, cvc)).json()['fingerprint']
    assert.equal(await fingerprint('{{ data.cvc }}', '123'), undefined)
    const both = '{{ data.number }} {{ data.cvc }}'
    assert.equal(await fingerprint(both, '123'), await fingerprint(both, '987'))
    assert.ok(await fingerprint(both, '123'))
  })

  test('ids with spaces, @ and other letters, percent-encoded or in clear', async () => {
    const stage = await tokenStage()
    const paths: [id: string, ...paths: string[]][] = [
      ['an id', 'an%20id'],
      ['ada@example.org', 'ada@example.org', 'ada%40example.org', '%61da%40example.org'],
      ['384-28-3948', '384-28-3948', '384%2D28%2D3948'],
      ['a:b;c,d', 'a:b;c,d', 'a%3Ab%3Bc%2Cd'],
      ['ключ😀', encodeURIComponent('ключ😀')],
      ['😀'.repeat(200), encodeURIComponent('😀'.repeat(200))],
    ]
    for (const [id, ...ways] of paths) {
      await made(stage, { data: id, id })
      for (const way of ways) {
        const reply = await stage.vault.call('GET', `/tokens/${way}`, { key: stage.revealKey })
        assert.equal(reply.status, 200, way)
        assert.equal(reply.json()['data'], id)
      }
    }
  })

  test('a token in several containers to a caller who may read one of them', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { data: 'x', containers: ['/a/', '/b/'] })
    assert.equal(
      (await get(stage, id, await keyWith(stage, 'mask', 'token:read', '/b/'))).status,
      200,
    )
    assert.equal(
      (await get(stage, id, await keyWith(stage, 'mask', 'token:read', '/c/'))).status,
      403,
    )
  })
})

describe('GET /tokens/{id} refuses', () => {
  test('a token in a container that the caller may not read: 403', async () => {
    const stage = await tokenStage()
    const id = await made(stage, CARD)
    const reply = await get(stage, id, await keyWith(stage, 'reveal', 'token:read', '/general/'))
    assert.equal(reply.status, 403)
    assert.equal(reply.json()['code'], 'permission_missing')
    assert.ok(!reply.text.includes('4242'))
  })

  test('a token from the instant at which it expires: 404', async () => {
    const stage = await tokenStage()
    const id = await made(stage, { data: 'x', expires_at: '2026-03-01T13:00:00Z' })
    stage.vault.world.clock.pass(60 * 60 * 1000 - 1)
    assert.equal((await get(stage, id)).status, 200)
    stage.vault.world.clock.pass(1)
    assert.equal((await get(stage, id)).status, 404)
  })

  test('absent, expired and foreign tokens with the same bytes', async () => {
    const stage = await tokenStage()
    await made(stage, { data: 'x', id: 'gone-by-now', expires_at: '2026-03-01T12:00:01Z' })
    const management = await stage.vault.addTenant('other')
    const body = { type: 'private', name: 'x', permissions: ['token:create'], rules: [REVEAL_ALL] }
    const other = await stage.vault.call('POST', '/applications', { key: management, body })
    const foreign = other.json()['key'] as string
    const theirs = await post(stage, { data: 'x', id: 'their-token' }, foreign)
    assert.equal(theirs.status, 201)
    stage.vault.world.clock.pass(1000)

    const answers = await Promise.all(
      ['gone-by-now', 'their-token', 'nobody-has-it', theirs.json()['created_by'], 'x'].map(
        async (id) => {
          const headers = { 'bt-trace-id': 'same' }
          const path = `/tokens/${id as string}`
          const reply = await stage.vault.call('GET', path, { key: stage.key, headers })
          const { date: _date, ...sent } = reply.headers
          return { status: reply.status, text: reply.text, headers: sent }
        },
      ),
    )
    assert.equal(answers[0]!.status, 404)
    for (const it of answers) assert.deepEqual(it, answers[0])
    assert.equal((await get(stage, 'their-token', foreign)).status, 200)
  })

  test('the internal name of a token that has an id of its own: 404', async () => {
    const stage = await tokenStage()
    await made(stage, { data: 'x', id: 'its-own-id' })
    assert.equal((await get(stage, stage.stored()[0]!.internalId)).status, 404)
  })

  test('a public application, whatever token it is: 403', async () => {
    const stage = await tokenStage()
    const key = await stage.vault.keyFor({ type: 'public', permissions: ['token:create'] })
    assert.equal((await get(stage, await made(stage, CARD), key)).status, 403)
    assert.equal((await get(stage, 'nobody-has-it', key)).status, 403)
  })
})
