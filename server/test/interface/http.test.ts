import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FieldBuilds } from '../../src/fields/field-builds.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import {
  BODY_BYTES_MAX,
  IDENTITY_CACHE_MS,
  JSON_DEPTH_MAX,
  TRACE_ID_CHARS_MAX,
} from '../../src/base/limits.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import type { CallOptions, Method, Reply } from '../kit/still-vault.ts'
import { pathsOf, tokenStage, UUID_V4, type TokenStage } from '../kit/token-stage.ts'

const ROUTES = stillRoutes()

function problem(status: number, title: string, code: string, detail: string): JsonObject {
  return { title, status, detail, code }
}

function invalid(code: string, detail: string, errors: JsonObject): JsonObject {
  return { errors, ...problem(400, 'One or more validation errors occurred.', code, detail) }
}

describe('an error answer', () => {
  type Ask = (stage: TokenStage) => Promise<Reply>
  const errors: [name: string, ask: Ask, body: JsonObject][] = [
    [
      '400 has the members at fault',
      ({ tryTokenize }) => tryTokenize({ type: 'card', data: { number: 'x' } }),
      invalid('token_data_invalid', 'The token data is not valid.', {
        'data.number': ['The card number must be 13 to 19 digits without separators.'],
      }),
    ],
    [
      '400 about no member has errors all the same',
      ({ vault, key }) => vault.call('POST', '/tokenize', { key }),
      invalid('body_missing', 'A JSON body is required.', {}),
    ],
    [
      '401 without a key',
      ({ vault }) => vault.call('GET', '/permissions'),
      problem(401, 'Unauthorized', 'key_missing', 'The BT-API-KEY header is required.'),
    ],
    [
      '401 with a key that does not exist',
      ({ vault }) => vault.call('GET', '/permissions', { key: 'x' }),
      problem(
        401,
        'Unauthorized',
        'key_unknown',
        'The API key is not known, was revoked, or has expired.',
      ),
    ],
    [
      '404 for a path',
      ({ vault }) => vault.call('GET', '/nowhere'),
      problem(404, 'Not Found', 'route_not_found', 'There is nothing at this path.'),
    ],
    [
      '404 for a thing',
      ({ vault, key }) => vault.call('GET', '/tokens/none', { key }),
      problem(404, 'Not Found', 'token_not_found', 'There is no such token.'),
    ],
    [
      '405',
      ({ vault }) => vault.call('DELETE', '/tokenize'),
      problem(
        405,
        'Method Not Allowed',
        'method_not_allowed',
        'The path does not support this method.',
      ),
    ],
    [
      '409',
      async ({ tryTokenize }) => {
        await tryTokenize({ type: 'token', data: 'x', id: 'taken' })
        return await tryTokenize({ type: 'token', data: 'x', id: 'taken' })
      },
      {
        ...problem(409, 'Conflict', 'token_id_taken', 'A token with this id already exists.'),
        errors: { id: ['It is taken.'] },
      },
    ],
    [
      '413',
      ({ vault, key }) =>
        vault.call('POST', '/tokenize', { key, rawBody: Buffer.alloc(BODY_BYTES_MAX + 1) }),
      problem(413, 'Content Too Large', 'body_too_large', 'The body is larger than 5 MiB.'),
    ],
    [
      '415',
      ({ vault, key }) =>
        vault.call('POST', '/tokenize', {
          key,
          rawBody: '"x"',
          headers: { 'content-type': 'text/plain' },
        }),
      problem(
        415,
        'Unsupported Media Type',
        'content_type_unsupported',
        'Send JSON as application/json, a patch as application/merge-patch+json, and neither with a content coding.',
      ),
    ],
  ]
  for (const [name, ask, body] of errors) {
    test(`of ${name}`, async () => {
      const reply = await ask(await tokenStage())
      assert.deepEqual(reply.json(), body)
      assert.equal(reply.status, body['status'])
      assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8')
      assert.equal(reply.headers['content-length'], String(Buffer.byteLength(reply.text)))
    })
  }

  test('of 403', async () => {
    const { vault } = await tokenStage()
    const key = await vault.keyFor({ permissions: ['token:read'] })
    const reply = await vault.call('POST', '/tokenize', { key, body: 'x' })
    assert.deepEqual(
      reply.json(),
      problem(
        403,
        'Forbidden',
        'permission_missing',
        'The API key lacks the permission: token:create.',
      ),
    )
  })

  test('of 403 says which type of application can, if the type of the caller never can', async () => {
    const { vault } = await tokenStage()
    const never = (type: string, instead: string): string =>
      `No ${type} key can have it: ${instead} (POST /applications).`
    const cases: [type: string, ask: string, detail: string][] = [
      [
        'management',
        'POST /tokenize',
        `token:create. ${never('management', 'use the key of an application that was created with "type": "public" or "private"')}`,
      ],
      [
        'private',
        'GET /applications',
        `application:read. ${never('private', 'use the key of an application that was created with "type": "management"')}`,
      ],
      [
        'public',
        'GET /tokens',
        `token:read. ${never('public', 'open a session, or on your server use the key of an application that was created with "type": "private"')}`,
      ],
      [
        'public',
        'POST /reactors/0198c5a0-0000-7000-8000-000000000000/react',
        `token:use or reactor:invoke. ${never('public', 'open a session, or on your server use the key of an application that was created with "type": "private"')}`,
      ],
    ]
    for (const [type, ask, detail] of cases) {
      const key =
        type === 'management'
          ? vault.managementKey
          : await vault.keyFor({ type, permissions: ['token:create'] })
      const [method, path] = ask.split(' ') as [Method, string]
      const body = method === 'POST' ? { body: { args: {} } } : {}
      const reply = await vault.call(method, path, { key, ...body })
      const said = reply.json()
      assert.equal(said['code'], 'permission_missing', ask)
      assert.equal(said['detail'], `The API key lacks the permission: ${detail}`)
    }
  })

  test('of 403 for a key of the wrong type names the right type', async () => {
    const { vault } = await tokenStage()
    const key = await vault.keyFor({ permissions: ['token:read'] })
    const reply = await vault.call('POST', '/sessions', { key })
    assert.deepEqual(
      reply.json(),
      problem(
        403,
        'Forbidden',
        'key_type_unfit',
        'Keys of this type cannot call this operation. Use the key of an application that was created with "type": "public" (POST /applications).',
      ),
    )
  })

  test('of 405 says which methods there are', async () => {
    const { vault } = await tokenStage()
    assert.equal((await vault.call('PATCH', '/tokenize')).headers['allow'], 'POST')
    const reply = await vault.call('POST', '/applications/x')
    assert.equal(reply.status, 405)
    const allowed = reply.headers['allow']!.split(', ')
    for (const method of ['GET', 'PUT', 'DELETE']) assert.ok(allowed.includes(method))
    assert.ok(!allowed.includes('POST'))
  })

  test('of 405 says the methods of every path that it may be', async () => {
    const { vault } = await tokenStage()
    const reply = await vault.call('PUT', '/tokens/search')
    // Any caller may choose this id for a token.
    const allowed = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST']
    assert.deepEqual(reply.headers['allow']!.split(', ').toSorted(), allowed)
  })

  test('of 405 is given for HEAD where there is no GET', async () => {
    const { vault } = await tokenStage()
    const reply = await vault.servers.next().inject({ method: 'HEAD', url: '/tokenize' })
    assert.equal(reply.statusCode, 405)
    assert.equal(reply.headers['allow'], 'POST')
  })

  for (const path of ['/tokens/%zz', '/%', '/tokens/%ff', `/tokens/${'a'.repeat(5000)}`]) {
    test(`of 404 is given for the path ${path.slice(0, 20)}, and it is logged`, async () => {
      const { vault, key } = await tokenStage()
      const headers = { 'bt-trace-id': 'mine', origin: 'https://shop.example' }
      const reply = await vault.call('GET', path, { key, headers })
      assert.equal(reply.status, 404)
      assert.equal(reply.json()['code'], 'route_not_found')
      assert.equal(reply.headers['bt-trace-id'], 'mine')
      assert.equal(reply.headers['access-control-allow-origin'], '*')
      const [event, fields] = vault.world.logged.at(-1) as [string, JsonObject]
      assert.equal(event, 'request')
      assert.deepEqual([fields['route'], fields['status']], ['none', 404])
      assert.equal(fields['trace_id'], 'mine')
    })
  }
})

describe('a request is refused with 401', () => {
  const keys: [name: string, key: (stage: TokenStage) => Promise<string> | string][] = [
    ['an empty key', () => ''],
    ['a key of another make', () => 'Bearer abc'],
    ['a key with a wrong letter', ({ key }) => key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A')],
    ['a key in capitals', ({ key }) => key.toUpperCase()],
    ['a key of a deleted application', ({ vault, key }) => deleted(vault, key)],
    ['a key that was deleted', ({ vault, key }) => keyDeleted(vault, key)],
    ['a key that was replaced', ({ vault, key }) => regenerated(vault, key)],
    ['a key of an application that expired', (stage) => expired(stage)],
  ]
  for (const [name, key] of keys) {
    test(`for ${name}`, async () => {
      const stage = await tokenStage()
      const reply = await stage.vault.call('GET', '/tokens/x', { key: await key(stage) })
      assert.equal(reply.status, 401)
      assert.equal(reply.json()['code'], name === 'an empty key' ? 'key_missing' : 'key_unknown')
    })
  }

  type Vault = TokenStage['vault']

  async function idOf(vault: Vault, key: string): Promise<string> {
    return (await vault.call('GET', '/applications/key', { key })).json()['id'] as string
  }

  async function deleted(vault: Vault, key: string): Promise<string> {
    const path = `/applications/${await idOf(vault, key)}`
    assert.equal((await vault.call('DELETE', path, { key: vault.managementKey })).status, 204)
    return key
  }

  async function keyDeleted(vault: Vault, key: string): Promise<string> {
    const path = `/applications/${await idOf(vault, key)}/keys`
    const keys = await vault.call('GET', path, { key: vault.managementKey })
    const [{ id }] = JSON.parse(keys.text) as [{ id: string }]
    const reply = await vault.call('DELETE', `${path}/${id}`, { key: vault.managementKey })
    assert.equal(reply.status, 204)
    return key
  }

  async function regenerated(vault: Vault, key: string): Promise<string> {
    const path = `/applications/${await idOf(vault, key)}/regenerate`
    const reply = await vault.call('POST', path, { key: vault.managementKey })
    assert.equal(reply.status, 200)
    const fresh = reply.json()['key'] as string
    assert.equal((await vault.call('GET', '/permissions', { key: fresh })).status, 200)
    return key
  }

  async function expired({ vault }: TokenStage): Promise<string> {
    const application = { permissions: ['token:read'], expires_at: '2026-03-01T12:00:10Z' }
    const key = await vault.keyFor(application)
    vault.world.clock.pass(9_999)
    assert.equal((await vault.call('GET', '/tokens/x', { key })).status, 404)
    assert.ok(IDENTITY_CACHE_MS > 1, 'the answer is known from before')
    vault.world.clock.pass(1)
    return key
  }
})

describe('the content type of a body', () => {
  const types: [type: string | undefined, status: number][] = [
    ['application/json', 200],
    ['Application/JSON', 200],
    ['application/json; charset=utf-8', 200],
    ['application/json;charset=UTF-8', 200],
    ['application/vnd.api+json', 200],
    ['application/json-patch+json', 200],
    [undefined, 200],
    ['text/plain', 415],
    ['text/json', 415],
    ['application/x-www-form-urlencoded', 415],
    ['multipart/form-data; boundary=x', 415],
    ['application/xml', 415],
    ['application/jsonx', 415],
    ['application/', 415],
    ['json', 415],
  ]
  for (const [type, status] of types) {
    test(`may${status === 200 ? '' : ' not'} be ${type ?? 'absent'}: ${status}`, async () => {
      const { vault, key } = await tokenStage()
      const reply = await vault.servers.next().inject({
        method: 'POST',
        url: '/tokenize',
        headers: { 'bt-api-key': key, ...(type === undefined ? {} : { 'content-type': type }) },
        payload: Buffer.from('"x"'),
      })
      assert.equal(reply.statusCode, status, reply.payload)
    })
  }

  for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'application/json']) {
    test(`does not matter without a body: ${type} on an operation that takes none`, async () => {
      const { vault, applicationId } = await tokenStage()
      const reply = await vault.call('POST', `/applications/${applicationId}/keys`, {
        key: vault.managementKey,
        headers: { 'content-type': type, 'content-length': '0' },
      })
      assert.equal(reply.status, 201, reply.text)
    })
  }
})

describe('the size of a body', () => {
  for (const [over, status] of [
    [-1, 200],
    [0, 200],
    [1, 413],
  ] as const) {
    test(`of 5 MiB and ${over}: ${status}`, async () => {
      const { vault, key, stored } = await tokenStage()
      const rawBody = `"${'a'.repeat(BODY_BYTES_MAX - 2 + over)}"`
      const reply = await vault.call('POST', '/tokenize', { key, rawBody })
      assert.equal(reply.status, status)
      assert.equal(stored().length, status === 200 ? 1 : 0)
      assert.equal(reply.headers['connection'] === 'close', status === 413)
    })
  }
})

describe('a body that is no JSON is refused with 400:', () => {
  const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
  const bodies: [name: string, bytes: string | Buffer][] = [
    ['text', 'hello'],
    ['white space', ' \n'],
    ['an end too soon', '{"a":'],
    ['something after the end', '{}{}'],
    ['a comma too many', '[1,]'],
    ['single quotes', "{'a':1}"],
    ['a comment', '{}//'],
    ['NaN', '[NaN]'],
    ['Infinity', '[-Infinity]'],
    ['a number beyond all numbers', '[1e999]'],
    ['an integer with more digits than can be kept', '[12345678901234567890]'],
    ['a byte order mark', '\ufeff"x"'],
    ['UTF-16', Buffer.from('"x"', 'utf16le')],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xc3, 0x28, 0x22])],
    ['half a surrogate pair', '"\\ud800"'],
    ['half a surrogate pair in a name', '{"\\udfff":1}'],
    ['a control character in a text', '"\u0001"'],
    ['one level too many', deep(JSON_DEPTH_MAX + 1)],
    ['a hundred thousand levels', deep(100_000)],
    ['a hundred thousand levels without an end', '['.repeat(100_000)],
  ]
  for (const [name, rawBody] of bodies) {
    test(name, async () => {
      const { vault, key, stored } = await tokenStage()
      const reply = await vault.call('POST', '/tokenize', { key, rawBody })
      assert.equal(reply.status, 400)
      assert.equal(reply.json()['code'], 'body_json_invalid')
      assert.deepEqual(pathsOf(reply), ['error'])
      assert.deepEqual(stored(), [])
    })
  }

  test('and what it holds is not repeated', async () => {
    const { vault, key } = await tokenStage()
    const secret = '4242424242424242'
    for (const rawBody of [
      secret.repeat(2),
      `{"number":${secret}x}`,
      `["${secret}`,
      `"${secret}" x`,
    ]) {
      const reply = await vault.call('POST', '/tokenize', { key, rawBody })
      assert.equal(reply.status, 400)
      assert.ok(!reply.text.includes('4242'), reply.text)
    }
    assert.ok(!JSON.stringify(vault.world.logged).includes('4242'))
  })
})

describe('HEAD is answered like GET, without the body:', () => {
  for (const { method, path } of ROUTES) {
    if (method !== 'GET' || path === '/proxy') continue
    test(path, async () => {
      const { vault, key } = await tokenStage()
      const made = await vault.call('POST', '/tokens', { key, body: { data: 'x' } })
      const url = path
        .replace(':file', 'fields.js')
        .replace('/tokens/:id', `/tokens/${made.json()['id'] as string}`)
        .replaceAll(/:[a-z]+/gi, 'x')
      for (const caller of [undefined, key, vault.managementKey]) {
        const answers: JsonObject[] = []
        for (const it of ['GET', 'HEAD'] as const) {
          const headers = { 'bt-trace-id': 'mine', 'bt-idempotency-key': 'once' }
          const reply = await vault.call(it, url, { ...(caller && { key: caller }), headers })
          const [event, fields] = vault.world.logged.at(-1) as [string, JsonObject]
          const logged = { ...fields, method: '', ms: 0 }
          answers.push({ event, logged, status: reply.status, headers: { ...reply.headers } })
        }
        assert.deepEqual(answers[1], answers[0])
      }
    })
  }
})

/** Has each file of each build. */
const ANY_BUILD: FieldBuilds = {
  current: async () => 'x',
  read: async () => ({ content: Buffer.from('x'), gzipped: Buffer.from('x') }),
}

describe('a slash at the end of a path changes nothing:', () => {
  for (const { method, path } of ROUTES) {
    const url = path
      .replace(':file', 'fields.js')
      .replace(':page', path.includes('operate') ? 'run.md' : 'errors.md')
      .replaceAll(/:[a-z]+/gi, 'x')
    test(`${method} ${path}/`, async () => {
      const { vault } = await tokenStage({ fieldBuilds: ANY_BUILD })
      const [bare, slashed] = await Promise.all([
        vault.call(method, url),
        vault.call(method, `${url}/`),
      ])
      const frame = path.includes('/frame/')
      assert.ok((frame ? [404] : [200, 302, 401]).includes(bare.status), `${bare.status}`)
      assert.equal(slashed.status, bare.status)
      assert.equal(slashed.text, bare.text)
      const preflight = await vault.call('OPTIONS', `${url}/`)
      assert.equal(preflight.status, 204)
    })
  }

  test('a token made at /tokens/ and /tokenize/', async () => {
    const { vault, key } = await tokenStage()
    assert.equal((await vault.call('POST', '/tokens/', { key, body: { data: 'x' } })).status, 201)
    assert.equal((await vault.call('POST', '/tokenize/', { key, body: 'x' })).status, 200)
    assert.equal(
      (await vault.call('GET', '/applications/?size=1', { key: vault.managementKey })).status,
      200,
    )
  })
})

describe('BT-TRACE-ID', () => {
  const echoed: [name: string, id: string][] = [
    ['any visible text', 'trace-1 {"a":2};~!'],
    ['one character', 'x'],
    ['200 characters', 'x'.repeat(TRACE_ID_CHARS_MAX)],
  ]
  for (const [name, id] of echoed) {
    test(`is echoed: ${name}`, async () => {
      const { vault, key } = await tokenStage()
      const headers = { 'bt-trace-id': id }
      const reply = await vault.call('GET', '/tokens/x', { key, headers })
      assert.equal(reply.headers['bt-trace-id'], id)
      assert.ok(JSON.stringify(vault.world.logged.at(-1)).includes(JSON.stringify(id)))
    })
  }

  const made: [name: string, headers: Record<string, string>][] = [
    ['absent', {}],
    ['empty', { 'bt-trace-id': '' }],
    ['201 characters', { 'bt-trace-id': 'x'.repeat(TRACE_ID_CHARS_MAX + 1) }],
    ['beyond ASCII', { 'bt-trace-id': 'tracé' }],
    ['with a control character', { 'bt-trace-id': 'a\tb' }],
  ]
  for (const [name, headers] of made) {
    test(`is made when the caller's is ${name}`, async () => {
      const { vault, key } = await tokenStage()
      const call = (): Promise<Reply> => vault.call('GET', '/tokens/x', { key, headers })
      const [one, other] = [await call(), await call()]
      assert.match(one.headers['bt-trace-id']!, UUID_V4)
      assert.notEqual(other.headers['bt-trace-id'], one.headers['bt-trace-id'])
    })
  }

  const everywhere: [status: number, method: Method, path: string, options?: CallOptions][] = [
    [200, 'GET', '/health/live'],
    [204, 'OPTIONS', '/tokenize'],
    [400, 'POST', '/tokenize', { rawBody: '{' }],
    [401, 'GET', '/permissions', { key: 'x' }],
    [404, 'GET', '/nowhere'],
    [405, 'PUT', '/tokenize'],
    [413, 'POST', '/tokenize', { rawBody: Buffer.alloc(BODY_BYTES_MAX + 1) }],
    [415, 'POST', '/tokenize', { rawBody: 'x', headers: { 'content-type': 'text/plain' } }],
  ]
  for (const [status, method, path, options = {}] of everywhere) {
    test(`is on an answer of ${status}`, async () => {
      const { vault, key } = await tokenStage()
      const headers = { ...options.headers, 'bt-trace-id': 'mine' }
      const reply = await vault.call(method, path, { key, ...options, headers })
      assert.equal(reply.status, status)
      assert.equal(reply.headers['bt-trace-id'], 'mine')
    })
  }
})

describe('what is not known is ignored:', () => {
  test('query parameters', async () => {
    const { vault, key } = await tokenStage()
    assert.equal(
      (await vault.call('POST', '/tokenize?a=b&a=c&d&=&%zz', { key, body: 'x' })).status,
      200,
    )
    const management = { key: vault.managementKey }
    assert.equal((await vault.call('GET', '/applications?colour=blue', management)).status, 200)
  })

  test('headers', async () => {
    const { vault, key } = await tokenStage()
    const headers = {
      'bt-client-user-agent': '{"a":1}',
      'x-fern-language': 'JS',
      'x-api-key': 'other',
    }
    assert.equal((await vault.call('POST', '/tokenize', { key, body: 'x', headers })).status, 200)
  })

  test('members of a body', async () => {
    const { vault } = await tokenStage()
    const body = {
      name: 'x',
      type: 'private',
      permissions: ['token:read'],
      colour: 'blue',
      id: 'x',
    }
    const reply = await vault.call('POST', '/applications', { key: vault.managementKey, body })
    assert.equal(reply.status, 201)
    assert.equal(reply.json()['colour'], undefined)
    assert.match(reply.json()['id'] as string, UUID_V4)
  })

  test('members of a body that are null, as if they were absent', async () => {
    const { vault } = await tokenStage()
    const body = {
      name: 'x',
      type: 'private',
      permissions: ['token:read'],
      rules: null,
      expires_at: null,
    }
    const reply = await vault.call('POST', '/applications', { key: vault.managementKey, body })
    assert.equal(reply.status, 201, reply.text)
  })

  test('a body where none is taken, whatever it is', async () => {
    const { vault, applicationId } = await tokenStage()
    const path = `/applications/${applicationId}/keys`
    const options = { key: vault.managementKey, rawBody: '{"no JSON' }
    assert.equal((await vault.call('POST', path, options)).status, 201)
  })
})

describe('of several faults the first in this order is answered:', () => {
  const jsonTooLarge = Buffer.alloc(BODY_BYTES_MAX + 1, '[')
  const plain = { 'content-type': 'text/plain' }
  const bad: JsonObject = { type: 'card', data: { number: 'x' } }
  const taken: JsonObject = { type: 'token', data: 'x', id: 'taken', containers: ['/a/'] }

  /** `key` names an application below; without it there is no key. */
  const cases: [
    code: string,
    key: string | null,
    method: Method,
    path: string,
    options: CallOptions,
  ][] = [
    ['route_not_found', null, 'POST', '/nowhere', { rawBody: '{', headers: plain }],
    ['key_missing', null, 'POST', '/tokenize', { rawBody: jsonTooLarge, headers: plain }],
    [
      'content_type_unsupported',
      'reader',
      'POST',
      '/tokenize',
      { rawBody: jsonTooLarge, headers: plain },
    ],
    ['body_too_large', 'reader', 'POST', '/tokenize', { rawBody: jsonTooLarge }],
    ['body_json_invalid', 'reader', 'POST', '/tokenize', { rawBody: '{' }],
    ['permission_missing', 'reader', 'POST', '/tokenize', { body: bad }],
    ['permission_missing', 'reader', 'PUT', '/applications/none', { body: {} }],
    ['application_not_found', 'manager', 'PUT', '/applications/none', { body: {} }],
    ['token_data_invalid', 'elsewhere', 'POST', '/tokenize', { body: [bad, taken] }],
    ['permission_missing', 'elsewhere', 'POST', '/tokenize', { body: taken }],
    ['token_id_taken', 'creator', 'POST', '/tokenize', { body: taken }],
  ]
  for (const [code, who, method, path, options] of cases) {
    test(`${code} for ${who ?? 'nobody'}: ${method} ${path}`, async () => {
      const { vault, key } = await tokenStage()
      assert.equal((await vault.call('POST', '/tokenize', { key, body: taken })).status, 200)
      const rule = {
        priority: 1,
        container: '/b/',
        transform: 'mask',
        permissions: ['token:create'],
      }
      const keys: Record<string, string> = {
        reader: await vault.keyFor({ permissions: ['token:read'] }),
        elsewhere: await vault.keyFor({ rules: [rule] }),
        creator: key,
        manager: vault.managementKey,
      }
      const reply = await vault.call(method, path, {
        ...options,
        ...(who === null ? {} : { key: keys[who]! }),
      })
      assert.equal(reply.json()['code'], code)
    })
  }
})

describe('when the world fails', () => {
  const secret = 'very-secret-path'

  test('a commit that cannot be made is 503 with Retry-After, and says nothing of why', async () => {
    let failing = false
    const stage = await tokenStage({
      change: (world) => ({
        ...world,
        store: {
          ...world.store,
          commit: async (tenantId, changes) => {
            if (failing) throw new Error(`Cannot write ${secret}`)
            return await world.store.commit(tenantId, changes)
          },
        },
      }),
    })
    failing = true
    for (const [path, body] of [
      ['/tokenize', 'x'],
      ['/tokens', { data: 'x' }],
    ] as [string, Json][]) {
      const reply = await stage.vault.call('POST', path, { key: stage.key, body })
      assert.equal(reply.status, 503)
      assert.deepEqual(
        reply.json(),
        problem(
          503,
          'Service Unavailable',
          'store_unavailable',
          'The outcome is unknown: repeat the request, preferably with an idempotency key.',
        ),
      )
      assert.equal(reply.headers['retry-after'], '1')
      const [event, error] = stage.vault.world.logged.at(-1) as [string, Error]
      assert.equal(event, 'request_failed')
      assert.match((error.cause as Error).message, /very-secret-path/)
    }
    failing = false
    assert.equal((await stage.tryTokenize('x')).status, 200)
  })

  test('a fault is 500 with nothing but the trace id to find it by', async () => {
    let failing = false
    const stage = await tokenStage({
      change: (world) => ({
        ...world,
        keyring: {
          create: (tenantId, now) => world.keyring.create(tenantId, now),
          open: (tenantId) => {
            if (failing) throw new TypeError(`cannot read ${secret}`)
            return world.keyring.open(tenantId)
          },
          forget: (tenantId) => world.keyring.forget(tenantId),
        },
      }),
    })
    failing = true
    const reply = await stage.vault.call('POST', '/tokenize', {
      key: stage.key,
      body: 'x',
      headers: { 'bt-trace-id': 'mine' },
    })
    assert.deepEqual(reply.json(), {
      title: 'Internal Server Error',
      status: 500,
      detail: 'Something failed on our side. The BT-TRACE-ID of this answer finds it in the log.',
    })
    assert.equal(reply.status, 500)
    assert.equal(reply.headers['bt-trace-id'], 'mine')
    assert.ok(!(reply.text + JSON.stringify(reply.headers)).includes(secret))
    const [event, error, fields] = stage.vault.world.logged.at(-1) as [string, Error, JsonObject]
    assert.equal(event, 'request_failed')
    assert.match(error.message, /very-secret-path/)
    assert.equal(fields['trace_id'], 'mine')
  })

  test('a store that cannot be read is no 401 and no 404', async () => {
    const stage = await tokenStage({
      change: (world) => ({
        ...world,
        store: {
          ...world.store,
          tokens: {
            ...world.store.tokens,
            lookUp: async () => await Promise.reject(new Error(secret)),
          },
        },
      }),
    })
    const reply = await stage.vault.call('GET', '/tokens/x', { key: stage.key })
    assert.ok(reply.status >= 500)
    assert.ok(!reply.text.includes(secret))
  })

  test('GET /health/ready is 503 and GET /health/live is 200', async () => {
    const stage = await tokenStage({
      change: (world) => ({
        ...world,
        store: { ...world.store, check: async () => await Promise.reject(new Error(secret)) },
      }),
    })
    const ready = await stage.vault.call('GET', '/health/ready')
    assert.equal(ready.status, 503)
    assert.deepEqual(ready.json(), { status: 'unavailable', checks: { store: 'unavailable' } })
    const logged = stage.vault.world.logged as [string, unknown][]
    const [, error] = logged.find(([event]) => event === 'store_check_failed')!
    assert.equal((error as Error).message, secret)
    const live = await stage.vault.call('GET', '/health/live')
    assert.equal(live.status, 200)
    assert.deepEqual(live.json(), { status: 'ok' })
  })
})

test('GET /health/ready is 200 when the store can be read and written', async () => {
  const { vault } = await tokenStage()
  const reply = await vault.call('GET', '/health/ready')
  assert.equal(reply.status, 200)
  assert.deepEqual(reply.json(), { status: 'ok', checks: { store: 'ok', reactors: 'own users' } })
})

test('no answer holds a null member', async () => {
  const { vault, key, tokenize } = await tokenStage()
  const nulls = (text: string): boolean => /:null/.test(text)
  await tokenize({ type: 'token', data: 'x', id: 'some-token' })
  for (const [path, by] of [
    ['/tokens/some-token', key],
    ['/applications', vault.managementKey],
    ['/permissions', key],
  ] as const) {
    const reply = await vault.call('GET', path, { key: by })
    assert.equal(reply.status, 200)
    assert.ok(!nulls(reply.text), reply.text)
  }
})
