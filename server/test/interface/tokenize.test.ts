import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { JSON_DEPTH_MAX } from '../../src/base/limits.ts'
import { pathsOf, shapeOf, STILL_INSTANT, tokenStage, UUID_V4 } from '../kit/token-stage.ts'

const CARD: JsonObject = {
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' },
}
const MASKED_CARD = {
  number: 'XXXXXXXXXXXX4242',
  expiration_month: 12,
  expiration_year: 2030,
}
const MADE = { created_by: '<application>', created_at: STILL_INSTANT }
const GENERIC = { containers: ['/general/high/'], ...MADE }
const CARD_ENTRY = {
  id: '<uuid>',
  tenant_id: '<tenant>',
  type: 'card',
  data: MASKED_CARD,
  fingerprint_expression: '{{ data.number }}',
  containers: ['/pci/high/'],
  ...MADE,
}

describe('POST /tokenize answers', () => {
  const shapes: [name: string, payload: Json, answer: Json][] = [
    [
      'an object of strings with the same object, an id for each value',
      { first: 'Ada', last: 'Lovelace' },
      { first: '<uuid>', last: '<uuid>' },
    ],
    ['an array of strings with an array of ids', ['Ada', 'Lovelace'], ['<uuid>', '<uuid>']],
    ['a string at the root with its id', 'Ada', '<uuid>'],
    ['a number at the root with its id', 42, '<uuid>'],
    ['numbers and booleans with ids', [1, 1.5, -0, true, false], Array(5).fill('<uuid>')],
    ['the empty string with an id', { it: '' }, { it: '<uuid>' }],
    ['null with null', { it: null, list: [null, 'x'] }, { it: null, list: [null, '<uuid>'] }],
    ['an empty object as it is', {}, {}],
    ['an empty array as it is', [], []],
    ['empty objects and arrays inside as they are', { a: {}, b: [[], {}] }, { a: {}, b: [[], {}] }],
    [
      'nested objects and arrays with their structure',
      { a: [{ b: { c: ['x'] } }] },
      { a: [{ b: { c: ['<uuid>'] } }] },
    ],
    [
      'an object with data but no type by going into it',
      { data: 'x', other: { data: { data: 'y' } } },
      { data: '<uuid>', other: { data: { data: '<uuid>' } } },
    ],
    [
      'an object with a type but no data by going into it',
      { type: 'card', number: 'x' },
      { type: '<uuid>', number: '<uuid>' },
    ],
    [
      'an object whose type is no string by going into it',
      { type: 1, data: 'x' },
      { type: '<uuid>', data: '<uuid>' },
    ],
    [
      'a card at the root with its evaluated mask and no data',
      CARD,
      {
        id: '<uuid>',
        tenant_id: '<tenant>',
        type: 'card',
        mask: MASKED_CARD,
        fingerprint_expression: '{{ data.number }}',
        containers: ['/pci/high/'],
        ...MADE,
      },
    ],
    ['a card in an object with its masked data and no mask', { card: CARD }, { card: CARD_ENTRY }],
    ['a card in an array with its masked data and no mask', [CARD], [CARD_ENTRY]],
    [
      'a generic token at the root with neither data nor mask',
      { type: 'token', data: 'x' },
      { id: '<uuid>', tenant_id: '<tenant>', type: 'token', ...GENERIC },
    ],
    [
      'a generic token inside with neither data nor mask',
      [{ type: 'token', data: { any: ['JSON', 1, null] } }],
      [{ id: '<uuid>', tenant_id: '<tenant>', type: 'token', ...GENERIC }],
    ],
    [
      'a generic token with a mask at the root with its evaluated mask',
      { type: 'token', data: 'secret', mask: '{{ data | reveal_last: 2 }}' },
      { id: '<uuid>', tenant_id: '<tenant>', type: 'token', mask: 'XXXXet', ...GENERIC },
    ],
    [
      'a generic token with a mask inside with its masked data',
      { it: { type: 'token', data: 'secret', mask: '{{ data | reveal_last: 2 }}' } },
      { it: { id: '<uuid>', tenant_id: '<tenant>', type: 'token', data: 'XXXXet', ...GENERIC } },
    ],
    [
      'a bank account inside with its masked data',
      [{ type: 'bank', data: { routing_number: '021000021', account_number: '00001234' } }],
      [
        {
          id: '<uuid>',
          tenant_id: '<tenant>',
          type: 'bank',
          data: { routing_number: '021000021', account_number: 'XXXX1234' },
          fingerprint_expression: '{{ data.account_number }}|{{ data.routing_number }}',
          containers: ['/bank/high/'],
          ...MADE,
        },
      ],
    ],
    [
      'strings and token requests mixed, each in its place',
      { name: 'Ada', payment: { card: CARD, notes: ['a', { type: 'token', data: 1 }] } },
      {
        name: '<uuid>',
        payment: {
          card: CARD_ENTRY,
          notes: ['<uuid>', { id: '<uuid>', tenant_id: '<tenant>', type: 'token', ...GENERIC }],
        },
      },
    ],
    [
      'a token request with all it was sent beside the data',
      {
        type: 'token',
        data: { name: 'Ada', code: 'abc' },
        metadata: { shoe: '42' },
        search_indexes: ['{{ data.name }}'],
        fingerprint_expression: '{{ data.code }}',
        containers: ['/people/'],
        expires_at: '2030-08-26T19:23:57-07:00',
        encryption: { cek: { key: 'k', alg: 'AES' } },
      },
      {
        id: '<uuid>',
        tenant_id: '<tenant>',
        type: 'token',
        metadata: { shoe: '42' },
        fingerprint: '<fingerprint>',
        fingerprint_expression: '{{ data.code }}',
        search_indexes: ['{{ data.name }}'],
        containers: ['/people/'],
        expires_at: '2030-08-26T19:23:57-07:00',
        ...MADE,
        encryption: { cek: { key: 'k', alg: 'AES' } },
      },
    ],
    [
      'option members in camelCase as it answers those in snake_case',
      {
        type: 'token',
        data: 'x',
        searchIndexes: ['{{ data }}'],
        fingerprintExpression: '{{ data }}',
        deduplicateToken: false,
        expiresAt: '9/27/2030',
      },
      {
        id: '<uuid>',
        tenant_id: '<tenant>',
        type: 'token',
        fingerprint: '<fingerprint>',
        fingerprint_expression: '{{ data }}',
        search_indexes: ['{{ data }}'],
        containers: ['/general/high/'],
        expires_at: '2030-09-27T00:00:00+00:00',
        ...MADE,
      },
    ],
    [
      'a token request with null members as if they were not there',
      { type: 'token', data: 'x', id: null, mask: null, metadata: null, expires_at: null },
      { id: '<uuid>', tenant_id: '<tenant>', type: 'token', ...GENERIC },
    ],
    [
      'a token request with unknown members as if they were not there',
      { type: 'token', data: 'x', colour: 'blue', tenant_id: 'another', created_by: 'nobody' },
      { id: '<uuid>', tenant_id: '<tenant>', type: 'token', ...GENERIC },
    ],
  ]
  for (const [name, payload, answer] of shapes) {
    test(name, async () => {
      const stage = await tokenStage()
      assert.deepEqual(shapeOf(stage, withFormOfFingerprint(await stage.tokenize(payload))), answer)
    })
  }

  test('keys in the order they were sent', async () => {
    const { tokenize } = await tokenStage()
    const answer = await tokenize({ z: 'a', a: { y: 1, b: 2 }, m: 'c' })
    assert.deepEqual(Object.keys(answer as JsonObject), ['z', 'a', 'm'])
    assert.deepEqual(Object.keys((answer as { a: JsonObject }).a), ['y', 'b'])
  })

  test('__proto__ like any other key', async () => {
    const stage = await tokenStage()
    const text = '{"__proto__":{"__proto__":"x","constructor":"y"},"toString":"z"}'
    const reply = await stage.vault.call('POST', '/tokenize', { key: stage.key, rawBody: text })
    const shown = reply.text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'id')
    assert.equal(shown, '{"__proto__":{"__proto__":"id","constructor":"id"},"toString":"id"}')
    const { ['__proto__']: inner } = JSON.parse(reply.text) as Record<string, JsonObject>
    assert.equal(await stage.reveal(inner!['__proto__']), 'x')
  })

  test('__proto__ inside data as it was sent, when it is revealed', async () => {
    const { vault, key, revealKey } = await tokenStage()
    const data = '{"__proto__":{"a":1},"constructor":{"prototype":null}}'
    const rawBody = `{"type":"token","data":${data}}`
    const made = await vault.call('POST', '/tokenize', { key, rawBody })
    const id = made.json()['id'] as string
    const read = await vault.call('GET', `/tokens/${id}`, { key: revealKey })
    assert.ok(read.text.includes(`"data":${data}`), read.text)
  })

  test('200, as JSON', async () => {
    const { tryTokenize } = await tokenStage()
    const reply = await tryTokenize('x')
    assert.equal(reply.status, 200)
    assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8')
    assert.equal(reply.headers['location'], undefined)
  })

  test('different ids for equal values', async () => {
    const { tokenize } = await tokenStage()
    const ids = (await tokenize(['x', 'x', 'x'])) as string[]
    assert.equal(new Set(ids).size, 3)
    assert.ok(ids.every((it) => UUID_V4.test(it)))
  })

  test('ids in the order of the values, as far as 26 bits tell, so that stores can append them', async () => {
    const { tokenize } = await tokenStage()
    const ids = (await tokenize(Array.from({ length: 100 }, (_, n) => n))) as string[]
    const leading = ids.map((it) => it.slice(0, 23))
    assert.ok(new Set(leading).size > 90)
    assert.deepEqual(leading, leading.toSorted())
  })

  test('no raw data, even to a caller with a rule that reveals', async () => {
    const rules = [
      { priority: 1, container: '/', transform: 'reveal', permissions: ['token:create'] },
    ]
    const stage = await tokenStage({}, { rules })
    const reply = await stage.tryTokenize([CARD, { type: 'token', data: 'plain-secret' }])
    assert.deepEqual(shapeOf(stage, JSON.parse(reply.text) as Json), [
      CARD_ENTRY,
      { id: '<uuid>', tenant_id: '<tenant>', type: 'token', ...GENERIC },
    ])
    assert.ok(!/4242424242424242|plain-secret|"123"/.test(reply.text))
  })

  test('neither data nor mask to a caller whose rule redacts', async () => {
    const rules = [
      { priority: 1, container: '/', transform: 'redact', permissions: ['token:create'] },
    ]
    const stage = await tokenStage({}, { rules })
    const { data: _data, ...redacted } = CARD_ENTRY
    assert.deepEqual(shapeOf(stage, await stage.tokenize(CARD)), redacted)
    assert.deepEqual(shapeOf(stage, await stage.tokenize({ it: CARD })), { it: redacted })
  })
})

describe('POST /tokenize keeps', () => {
  const values: Json[] = ['x', '', ' ', 'ÄÖ😀\u0000', 0, -0.5, 1e300, true, false]
  test('plain values with their types', async () => {
    const { tokenize, reveal } = await tokenStage()
    const ids = (await tokenize(values)) as string[]
    assert.deepEqual(await Promise.all(ids.map(reveal)), values)
  })

  test('the data of a generic token, whatever JSON it is', async () => {
    const { tokenize, reveal } = await tokenStage()
    for (const data of [...values, { a: [null, { type: 'card', data: 'x' }] }, [], {}, [[]]]) {
      const answer = (await tokenize({ type: 'token', data })) as JsonObject
      assert.deepEqual(await reveal(answer['id']), data)
    }
  })

  test('a token request inside the data of another as data', async () => {
    const { tokenize, reveal, stored } = await tokenStage()
    const answer = (await tokenize({ type: 'token', data: { inner: CARD } })) as JsonObject
    assert.deepEqual(await reveal(answer['id']), { inner: CARD })
    assert.equal(stored().length, 1)
  })

  test('plain values in /general/high/', async () => {
    const { tokenize, stored } = await tokenStage()
    await tokenize(['x', { deep: 1 }])
    assert.deepEqual(
      stored().map((it) => `${it.type} in ${it.containers.join(' ')}`),
      Array(2).fill('token in /general/high/'),
    )
  })

  test('no plaintext in what the store is given', async () => {
    const { tokenize, stored } = await tokenStage()
    await tokenize([CARD, 'plain-secret', { type: 'token', data: { a: 'plain-secret' } }])
    for (const token of stored()) {
      for (const bytes of [token.data, token.cvc?.envelope ?? new Uint8Array()]) {
        assert.ok(!Buffer.from(bytes).includes('plain-secret'))
        assert.ok(!Buffer.from(bytes).includes('42424242'))
      }
    }
  })
})

describe('POST /tokenize refuses', () => {
  test('the whole payload when one entry is not valid, and stores nothing', async () => {
    const { tryTokenize, stored } = await tokenStage()
    const bad = { type: 'card', data: { number: '4242424242424241' } }
    for (const payload of [[CARD, 'x', bad], { bad, good: 'x' }, [bad, CARD]]) {
      assert.equal((await tryTokenize(payload)).status, 400)
    }
    assert.deepEqual(stored(), [])
  })

  test('by the path of the member at fault, without its value', async () => {
    const { tryTokenize } = await tokenStage()
    const bad = { type: 'card', data: { number: '4242424242424241', cvc: '31415' } }
    const places: [payload: Json, prefix: string][] = [
      [bad, ''],
      [['x', CARD, bad], '[2].'],
      [{ a: { b: [bad] } }, 'a.b[0].'],
    ]
    for (const [payload, prefix] of places) {
      const reply = await tryTokenize(payload)
      assert.equal(reply.status, 400)
      assert.equal(reply.json()['code'], 'token_data_invalid')
      assert.deepEqual(pathsOf(reply), [`${prefix}data.number`, `${prefix}data.cvc`])
      assert.ok(!/4242424242424241|31415/.test(reply.text), reply.text)
    }
  })

  test('an unknown type, without repeating it', async () => {
    const { tryTokenize, stored } = await tokenStage()
    for (const type of ['credit_card', '', 'Card', 'constructor', '__proto__']) {
      const reply = await tryTokenize(['x', { type, data: 'y' }])
      assert.equal(reply.status, 400)
      assert.equal(reply.json()['code'], 'token_type_unknown')
      assert.deepEqual(pathsOf(reply), ['[1].type'])
    }
    assert.deepEqual(stored(), [])
  })

  test('a token request whose data is null', async () => {
    const { tryTokenize } = await tokenStage()
    const reply = await tryTokenize({ type: 'token', data: null })
    assert.equal(reply.status, 400)
    assert.deepEqual(pathsOf(reply), ['data'])
  })

  for (const [tokens, status] of [
    [99, 200],
    [100, 200],
    [101, 400],
  ] as const) {
    test(`${tokens} tokens with ${status} when a request may make 100`, async () => {
      const { tryTokenize, stored } = await tokenStage({ tokensMax: 100 })
      const reply = await tryTokenize({ list: Array(tokens).fill('x'), none: [null, {}] })
      assert.equal(reply.status, status)
      assert.equal(stored().length, status === 200 ? tokens : 0)
      if (status === 400) assert.equal(reply.json()['code'], 'payload_tokens_max')
    })
  }

  for (const [levels, status] of [
    [JSON_DEPTH_MAX - 1, 200],
    [JSON_DEPTH_MAX, 200],
    [JSON_DEPTH_MAX + 1, 400],
  ] as const) {
    test(`${levels} levels of nesting with ${status}`, async () => {
      const { vault, key, stored } = await tokenStage()
      const rawBody = '['.repeat(levels) + '"x"' + ']'.repeat(levels)
      const reply = await vault.call('POST', '/tokenize', { key, rawBody })
      assert.equal(reply.status, status)
      assert.equal(stored().length, status === 200 ? 1 : 0)
    })
  }

  test('a payload that is not there', async () => {
    const { vault, key } = await tokenStage()
    const reply = await vault.call('POST', '/tokenize', { key })
    assert.equal(reply.status, 400)
    assert.equal(reply.json()['code'], 'body_missing')
  })
})

describe('POST /tokenize asks for token:create', () => {
  const plain = { permissions: ['token:create'] }
  const allowed: [name: string, application: JsonObject][] = [
    ['of a private application', { type: 'private', ...plain }],
    ['of a public application', { type: 'public', ...plain }],
    ['by a rule', { rules: [rule('/')] }],
    ['by a rule on each container', { rules: [rule('/pci/'), rule('/general/', 2)] }],
  ]
  for (const [name, application] of allowed) {
    test(`${name}: 200`, async () => {
      const { tokenize } = await tokenStage({}, application)
      await tokenize([CARD, 'x'])
    })
  }

  const denied: [name: string, application: JsonObject][] = [
    ['and gets none', { permissions: ['token:read', 'token:update', 'token:use'] }],
    ['of a management application', { type: 'management', permissions: ['application:read'] }],
    ['on each container, not on some', { rules: [rule('/pci/')] }],
    [
      'on the container itself, not on its neighbour',
      { rules: [rule('/pci/low/'), rule('/general/', 2)] },
    ],
    [
      'on the container itself, not below it',
      { rules: [rule('/pci/high/x/'), rule('/general/', 2)] },
    ],
  ]
  for (const [name, application] of denied) {
    test(`${name}: 403, and nothing is stored`, async () => {
      const { tryTokenize, stored } = await tokenStage({}, application)
      const reply = await tryTokenize([CARD, 'x'])
      assert.equal(reply.status, 403)
      assert.equal(reply.json()['code'], 'permission_missing')
      assert.deepEqual(stored(), [])
    })
  }
})

function rule(container: string, priority = 1): JsonObject {
  return { priority, container, transform: 'mask', permissions: ['token:create'] }
}

/** Puts a word in the place of a fingerprint that looks like one. */
function withFormOfFingerprint(answer: Json): Json {
  const { fingerprint } = (answer ?? {}) as JsonObject
  if (typeof fingerprint !== 'string') return answer
  assert.match(fingerprint, /^[1-9A-HJ-NP-Za-km-z]{40,100}$/)
  return { ...(answer as JsonObject), fingerprint: '<fingerprint>' }
}
