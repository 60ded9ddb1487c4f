/**
 * The ephemeral proxy, status by status, with a scripted egress gateway.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { BODY_BYTES_MAX, HEADERS_MAX, PROXY_TOKENS_MAX } from '../../src/base/limits.ts'
import { EgressFailure, type EgressFault, type EgressRule } from '../../src/ports/egress.ts'
import { STILL_NOW } from '../kit/still-world.ts'
import { stillVault, type Method, type Reply, type StillVault } from '../kit/still-vault.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const URL = 'https://example.com/api'
const NOBODY = '01945d00-0000-4000-8000-00000000000a'
const USE_ALL = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:use'] }

let vault: StillVault
let key: string
beforeEach(async () => {
  vault = await stillVault()
  key = await vault.keyFor({ permissions: ['token:create', 'token:use'] })
})
afterEach(() => vault.close())

interface ProxyCallOptions {
  readonly by?: string
  readonly url?: string
  readonly headers?: Record<string, string>
  readonly body?: Json
  readonly raw?: string | Buffer
}

function ask(method: Method, path: string, asked: ProxyCallOptions = {}): Promise<Reply> {
  const { by = key, url = URL, headers = {}, body, raw } = asked
  return vault.call(method, path, {
    ...(by !== '' && { key: by }),
    headers: {
      ...(url !== '' && { 'BT-PROXY-URL': url }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { rawBody: JSON.stringify(body) }),
    ...(raw !== undefined && { rawBody: raw }),
  })
}

async function token(data: Json, more: JsonObject = {}): Promise<string> {
  const body = { type: 'token', data, ...more }
  const reply = await vault.call('POST', '/tokens', { key, body })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

function sent() {
  return vault.world.egress.sent.map(({ method, url, body }) => ({
    method,
    url,
    body: body.toString(),
  }))
}

/** The last things that the audit log says, the latest first. */
async function messages(count: number): Promise<string[]> {
  const logs = await vault.call('GET', `/logs?size=${count}`, { key: vault.managementKey })
  return (logs.json()['data'] as JsonObject[]).map((it) => it['message'] as string)
}

/** Asserts that it is an error of the proxy's own and that nothing was sent, and returns what it says. */
function refused(reply: Reply, status: number, code?: string): JsonObject {
  assert.equal(reply.status, status, reply.text)
  assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8')
  assert.equal(reply.headers['bt-proxy-destination-status'], undefined)
  assert.ok(reply.headers['bt-trace-id'])
  const body = reply.json()
  assert.deepEqual(Object.keys(body), ['proxy_error'])
  const error = body['proxy_error'] as JsonObject
  assert.equal(error['title'], 'Invalid proxy request')
  assert.equal(error['status'], status)
  assert.equal(typeof error['detail'], 'string')
  assert.ok(typeof error['errors'] === 'object' && !Array.isArray(error['errors']))
  assert.equal(error['code'], code)
  assert.deepEqual(vault.world.egress.sent, [])
  return error
}

describe('2xx and whatever else the destination answers', () => {
  for (const method of METHODS) {
    test(`${method} passes method, path and query, status, headers and body`, async () => {
      vault.world.egress.reply = () => ({
        status: 207,
        reason: 'Multi',
        headers: ['X-Their', 'own', 'Content-Type', 'text/plain'],
        chunks: ['he', 'llo'],
      })
      const reply = await ask(method, '/proxy/a/b%20c?d=%2F&e')
      assert.equal(reply.status, 207)
      assert.equal(reply.text, 'hello')
      assert.equal(reply.headers['x-their'], 'own')
      assert.equal(reply.headers['content-type'], 'text/plain')
      assert.equal(reply.headers['bt-proxy-destination-status'], '207')
      assert.deepEqual(sent(), [{ method, url: `${URL}/a/b%20c?d=%2F&e`, body: '' }])
    })
  }

  test('a path is forwarded in whatever encoding it is', async () => {
    for (const path of ['/caf%e9', '/caf%c3%a9', '/%ff/%00', '/a%20b;c=%e9', '/%e9?%zz=%e9']) {
      assert.equal((await ask('GET', `/proxy${path}`)).status, 200)
      assert.equal(vault.world.egress.sent.at(-1)!.url, URL + path)
    }
  })

  for (const path of ['/proxy', '/proxy/', '/proxy?', '/proxy/?']) {
    test(`${path} is the base itself`, async () => {
      assert.equal((await ask('POST', path)).status, 200)
      assert.equal(sent()[0]?.url, URL)
    })
  }

  for (const status of [
    200, 204, 301, 304, 400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503,
  ]) {
    test(`${status} of the destination is the destination's`, async () => {
      vault.world.egress.reply = () => ({ status, reason: 'Theirs' })
      const reply = await ask('POST', '/proxy', { body: {} })
      assert.equal(reply.status, status)
      assert.equal(reply.headers['bt-proxy-destination-status'], String(status))
      assert.equal(reply.text, '')
    })
  }

  test('a body of any type arrives as it is when there is no expression in it', async () => {
    const bodies: [type: string | undefined, body: string | Buffer][] = [
      ['application/json', ' {"a" : 1.0, "a":12345678901234567890}\n'],
      ['application/json', '{"not json'],
      ['image/png', Buffer.from([0, 255, 123, 123, 10])],
      ['text/plain; charset=utf-8', 'a }} b'],
      [undefined, 'anything'],
      ['not a type', 'anything { else }'],
      ['text/plain; charset=utf-16', 'no braces'],
      ['application/x-www-form-urlencoded', 'a=b+c&d'],
    ]
    for (const [type, raw] of bodies) {
      const headers = type === undefined ? {} : { 'content-type': type }
      const { egress } = vault.world
      const reply = await vault.call('POST', '/proxy', {
        key,
        headers: { 'content-type': '', 'BT-PROXY-URL': URL, ...headers },
        rawBody: raw,
      })
      assert.equal(reply.status, 200, reply.text)
      assert.deepEqual(egress.sent.at(-1)!.body, Buffer.from(raw), type)
    }
  })

  test('an expression is replaced whatever character set an ASCII body says it has', async () => {
    const id = await token('4242')
    const bodies: [headers: Record<string, string>, sent: string][] = [
      [{ 'content-type': 'application/json; charset=windows-1252' }, '{"n":"ID"}'],
      [{ 'content-type': 'application/json; charset=utf-16' }, '{"n":"ID"}'],
      [{ 'content-type': 'application/json; charset=GBK' }, '{"n":"ID"}'],
      [
        { 'content-type': 'application/x-www-form-urlencoded; charset=windows-1252' },
        'CARDNO=ID&AMOUNT=10',
      ],
      [{ 'content-type': 'text/xml; charset=iso-8859-15' }, '<CARDNO>ID</CARDNO>'],
      [
        { 'content-type': 'text/xml' },
        '<?xml version="1.0" encoding="utf-16"?><CARDNO>ID</CARDNO>',
      ],
      [{ 'content-type': 'application/json', 'content-encoding': 'UTF-8' }, '{"n":"ID"}'],
      [{ 'content-type': 'application/json', 'content-encoding': '' }, '{"n":"ID"}'],
      [
        { 'content-type': 'application/json', 'content-encoding': 'identity, binary' },
        '{"n":"ID"}',
      ],
    ]
    for (const [headers, text] of bodies) {
      const reply = await vault.call('POST', '/proxy', {
        key,
        headers: { 'BT-PROXY-URL': URL, ...headers },
        rawBody: text.replace('ID', `{{ ${id} }}`),
      })
      assert.equal(reply.status, 200, reply.text)
      assert.equal(sent().at(-1)!.body, text.replace('ID', '4242'))
      assert.equal(reply.headers['bt-proxy-expressions'], undefined)
    }
  })

  test('a body that cannot be inspected is forwarded, and the response says so', async () => {
    const bodies: [headers: Record<string, string>, body: string][] = [
      [{ 'content-type': 'application/json', 'content-encoding': 'gzip' }, '{{ compressed }}'],
      [
        { 'content-type': 'text/plain', 'content-encoding': 'aws-chunked' },
        '5;a\r\n{{ x\r\n0;b\r\n',
      ],
      [{ 'content-type': 'text/plain', 'content-encoding': 'identity, br' }, '{{ compressed }}'],
      [{ 'content-type': 'multipart/digest; boundary=b' }, '--b\r\n\r\n{{ x }}\r\n--b--'],
    ]
    for (const [headers, raw] of bodies) {
      const call = { key, headers: { 'BT-PROXY-URL': URL, ...headers }, rawBody: raw }
      vault.world.egress.reply = () => ({
        status: 200,
        headers: ['BT-Proxy-Expressions', 'as the destination says'],
      })
      const reply = await vault.call('POST', '/proxy', call)
      assert.equal(reply.status, 200, reply.text)
      assert.equal(reply.headers['bt-proxy-expressions'], 'unread')
      assert.equal(sent().at(-1)!.body, raw)
      const dry = await vault.call('POST', '/proxy', {
        ...call,
        headers: { ...call.headers, 'BT-PROXY-DRY-RUN': 'true' },
      })
      assert.equal(dry.headers['bt-proxy-expressions'], 'unread')
    }
  })

  test('text in a character set that is not safe is refused when it may hold an expression', async () => {
    const count = vault.world.egress.sent.length
    const reply = await vault.call('POST', '/proxy', {
      key,
      headers: { 'BT-PROXY-URL': URL, 'content-type': 'text/plain; charset=utf-16' },
      rawBody: Buffer.from('{{ x }}', 'utf16le'),
    })
    assert.equal(reply.status, 400)
    const { proxy_error: error } = reply.json() as { proxy_error: { errors: unknown } }
    assert.deepEqual(error.errors, {
      error: ['It may hold an expression, and none can be replaced safely in utf-16: send UTF-8'],
    })
    assert.equal(vault.world.egress.sent.length, count)
  })

  test('GET and DELETE may have a body, with expressions', async () => {
    const id = await token('secret')
    for (const method of ['GET', 'DELETE'] as const) {
      assert.equal((await ask(method, '/proxy', { body: [`{{ ${id} }}`] })).status, 200)
      assert.deepEqual(sent().at(-1), { method, url: URL, body: '["secret"]' })
    }
  })

  test('expressions in header, path and query stay what they are', async () => {
    const id = await token('secret')
    const it = `{{${id}}}`
    await ask('POST', `/proxy/${it}?q=${it}`, { headers: { 'x-it': it }, raw: '' })
    const { url, headers } = vault.world.egress.sent[0]!
    assert.equal(url, `${URL}/%7B%7B${id}%7D%7D?q=${it}`)
    assert.equal(headers[headers.indexOf('x-it') + 1], it)
    assert.ok(!JSON.stringify(vault.world.egress.sent).includes('secret'))
  })

  test('a compressed body is not looked into', async () => {
    const raw = gzipSync(JSON.stringify(`{{ ${await token('secret')} }}`))
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    await ask('POST', '/proxy', { raw, headers })
    assert.deepEqual(vault.world.egress.sent[0]!.body, raw)
  })

  test('a body is what one label says that it is, and no other label goes along', async () => {
    const id = await token('x","amount":"0')
    for (const other of ['Content_Type', 'content_type']) {
      const headers = { [other]: 'text/plain', 'content-type': 'application/json' }
      await ask('POST', '/proxy', { raw: `{"a":"{{ ${id} }}"}`, headers })
      const { body, headers: arrived } = vault.world.egress.sent.at(-1)!
      assert.equal(body.toString(), '{"a":"x\\",\\"amount\\":\\"0"}')
      assert.ok(!arrived.includes(other))
    }
    const coded = { content_encoding: 'gzip', 'content-type': 'application/json' }
    await ask('POST', '/proxy', { raw: `["{{ ${await token('secret')} }}"]`, headers: coded })
    assert.equal(sent().at(-1)!.body, '["secret"]')
  })

  test('an idempotency key is ignored', async () => {
    const headers = { 'bt-idempotency-key': 'once' }
    await ask('POST', '/proxy', { body: 1, headers })
    await ask('POST', '/proxy', { body: 2, headers })
    assert.deepEqual(
      sent().map((it) => it.body),
      ['1', '2'],
    )
  })

  test('what a rule masks is sent as the mask, and what it redacts as nothing', async () => {
    const id = await token('4242424242424242', { mask: '{{ data | reveal_last: 4 }}' })
    const bare = await token('4242424242424242')
    for (const [transform, first, second] of [
      ['reveal', '4242424242424242', '4242424242424242'],
      ['mask', 'XXXXXXXXXXXX4242', null],
      ['redact', null, null],
    ] as const) {
      const by = await vault.keyFor({ rules: [{ ...USE_ALL, transform }] })
      await ask('POST', '/proxy', { by, body: [`{{ ${id} }}`, `{{ ${bare} }}`] })
      assert.deepEqual(JSON.parse(sent().at(-1)!.body), [first, second], transform)
    }
  })
})

describe('400', () => {
  const wrongHeaders: [what: string, headers: Record<string, string>][] = [
    ['no BT-PROXY-URL', { 'BT-PROXY-URL': '' }],
    ['a BT-PROXY-URL that is none', { 'BT-PROXY-URL': 'example.com' }],
    ['a BT-PROXY-CONNECTION that nominates headers', { 'BT-PROXY-CONNECTION': 'x-api-key' }],
    ['two options of BT-PROXY-CONNECTION', { 'BT-PROXY-CONNECTION': 'close, authorization' }],
    ['a BT-PROXY-KEEP-ALIVE that is none', { 'BT-PROXY-KEEP-ALIVE': 'timeout 5' }],
    ['an empty BT-PROXY-KEEP-ALIVE', { 'BT-PROXY-KEEP-ALIVE': '' }],
    ['a BT-PROXY-DRY-RUN that is neither', { 'BT-PROXY-DRY-RUN': 'yes' }],
  ]
  for (const [what, headers] of wrongHeaders) {
    test(`header_invalid for ${what}`, async () => {
      const error = refused(await ask('POST', '/proxy', { headers }), 400, 'header_invalid')
      assert.deepEqual(Object.keys(error['errors'] as JsonObject), [Object.keys(headers)[0]])
    })
  }

  test('path_invalid for a step up', async () => {
    for (const path of ['/a%2f%2E.%5Cb', '/%ff/..;%e9/x', '/%e9%2f..%2f%ff']) {
      refused(await ask('GET', `/proxy${path}`), 400, 'path_invalid')
    }
  })

  const rules: EgressRule[] = [
    'scheme',
    'credentials',
    'host',
    'literal',
    'port',
    'address',
    'unlisted',
  ]
  for (const rule of rules) {
    test(`destination_refused by the rule on ${rule}, which is named and recorded`, async () => {
      vault.world.egress.refuse = () => rule
      const id = await token('secret')
      const error = refused(
        await ask('POST', '/proxy', { body: `{{ ${id} }}` }),
        400,
        'destination_refused',
      )
      assert.deepEqual((error['errors'] as JsonObject)['rule'], [rule])
      assert.deepEqual(lastEvent(), ['proxy', 'invoke', false, 'example.com', []])
    })
  }

  test('expression_invalid for one that is not closed, or whose filter fails', async () => {
    const id = await token('secret')
    for (const text of ['{{ a', '{{ }}', `{{ ${id} | nofilter }}`, `{{ ${id} | to_number }}`]) {
      refused(await ask('POST', '/proxy', { body: { a: [text] } }), 400, 'expression_invalid')
    }
  })

  test('detokenize_tokens_unknown lists uuids, and does not repeat what may be data', async () => {
    const id = await token('secret')
    const gone = await token('gone')
    const by = await vault.keyFor({ permissions: ['token:delete'] })
    assert.equal((await vault.call('DELETE', `/tokens/${gone}`, { key: by })).status, 204)
    const body = { a: `{{ ${id} }} {{ ${gone} }}`, b: ['{{ 4242424242424242 }}', `{{${NOBODY}}}`] }
    const error = refused(await ask('POST', '/proxy', { body }), 400, 'detokenize_tokens_unknown')
    assert.equal(error['detail'], `Failed to detokenize some tokens: ${gone}, ${NOBODY}.`)
    assert.deepEqual(error['errors'], {
      a: [`There is no token ${gone}.`],
      'b[0]': ['There is no token of this id.'],
      'b[1]': [`There is no token ${NOBODY}.`],
    })
  })

  test('detokenize_tokens_unknown for an expired, an uncommitted and a foreign token', async () => {
    const expiresAt = new Date(STILL_NOW + 60_000).toISOString()
    const expired = await token('x', { expires_at: expiresAt })
    const open = (await vault.call('POST', '/transactions', { key })).json()['id'] as string
    const made = await vault.call('POST', '/tokens', {
      key,
      body: { type: 'token', data: 'x' },
      headers: { 'bt-transaction-id': open },
    })
    const other = await vault.addTenant('other')
    const theirs = await vault.call('POST', '/applications', {
      key: other,
      body: { name: 'b', type: 'private', permissions: ['token:create'] },
    })
    const foreign = await vault.call('POST', '/tokens', {
      key: theirs.json()['key'] as string,
      body: { type: 'token', data: 'x' },
    })
    vault.world.clock.pass(60_000)
    const ids = [expired, made.json()['id'], foreign.json()['id']] as string[]
    for (const id of ids) {
      const reply = await ask('POST', '/proxy', { body: `{{ ${id} }}` })
      refused(reply, 400, 'detokenize_tokens_unknown')
    }
  })

  test('detokenize_tokens_unknown within the transaction that made the token, for it is ignored', async () => {
    const open = (await vault.call('POST', '/transactions', { key })).json()['id'] as string
    const headers = { 'bt-transaction-id': open }
    const body = { type: 'token', data: 'x' }
    const made = await vault.call('POST', '/tokens', { key, body, headers })
    const id = made.json()['id'] as string
    const asked = { headers, body: `{{ ${id} }}` }
    refused(await ask('POST', '/proxy', asked), 400, 'detokenize_tokens_unknown')
    assert.equal((await vault.call('POST', `/transactions/${open}/commit`, { key })).status, 200)
    assert.equal((await ask('POST', '/proxy', asked)).status, 200)
  })

  test('detokenize_tokens_max for one token more than there may be', async () => {
    const ids = await Promise.all(Array.from({ length: PROXY_TOKENS_MAX + 1 }, () => token('x')))
    const body = (count: number) => ids.slice(0, count).map((id) => `{{ ${id} }}{{ ${id} }}`)
    const reply = await ask('POST', '/proxy', { body: body(PROXY_TOKENS_MAX + 1) })
    refused(reply, 400, 'detokenize_tokens_max')
    for (const count of [PROXY_TOKENS_MAX - 1, PROXY_TOKENS_MAX]) {
      assert.equal((await ask('POST', '/proxy', { body: body(count) })).status, 200)
    }
  })
})

describe('401', () => {
  test('key_missing without a key, key_unknown with one that is none', async () => {
    refused(await ask('POST', '/proxy/x', { by: '' }), 401, 'key_missing')
    refused(await ask('POST', '/proxy/x', { by: 'key_of_nobody' }), 401, 'key_unknown')
  })
})

describe('403', () => {
  const others: [what: string, application: JsonObject][] = [
    ['a public application', { type: 'public', permissions: ['token:create', 'token:update'] }],
    ['a management application', { type: 'management', permissions: ['proxy:read', 'log:read'] }],
    [
      'a private application that may do everything else',
      {
        permissions: [
          'token:create',
          'token:read',
          'token:update',
          'token:search',
          'token:delete',
          'reactor:invoke',
        ],
      },
    ],
  ]
  for (const [what, application] of others) {
    test(`permission_missing for ${what}, even if nothing is detokenized`, async () => {
      const by = await vault.keyFor(application)
      const reply = await ask('POST', '/proxy', { by, body: {} })
      const { detail } = refused(reply, 403, 'permission_missing')
      const lacks = 'The API key lacks the permission: token:use or proxy:invoke.'
      const type = application['type'] as string | undefined
      const never = type === undefined ? '' : ` No ${type} key can have it:`
      assert.ok(typeof detail === 'string' && detail.startsWith(lacks + never))
      assert.equal(detail === lacks, never === '')
      assert.deepEqual(vault.world.egress.vetted, [])
    })
  }

  test('permission_missing for a token in a container that the caller may not use', async () => {
    const mine = await token('mine', { containers: ['/general/'] })
    const other = await token('other', { containers: ['/pci/'] })
    const by = await vault.keyFor({ rules: [{ ...USE_ALL, container: '/general/' }] })
    assert.equal((await ask('POST', '/proxy', { by, body: `{{ ${mine} }}` })).status, 200)
    vault.world.egress.sent.length = 0
    const body = [`{{ ${mine} }}`, `{{ ${other} }}`]
    const { errors } = refused(await ask('POST', '/proxy', { by, body }), 403, 'permission_missing')
    assert.deepEqual(errors, { '[1]': [`The key has no right to token ${other}.`] })
    // Of neither is anything shown, and the audit log says so.
    assert.deepEqual(await messages(3), [
      'Refused: use token, without proxy:invoke toward example.com',
      'Token used: no data shown to example.com',
      'Proxy invoked toward example.com',
    ])
    // A token that does not exist is reported before a missing permission.
    const more = [...body, `{{ ${NOBODY} }}`]
    refused(await ask('POST', '/proxy', { by, body: more }), 400, 'detokenize_tokens_unknown')
  })

  test('proxy:invoke is enough, and so is a session that was given it', async () => {
    const id = await token('secret')
    const invoking = await vault.keyFor({ permissions: ['proxy:invoke'] })
    const page = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
    const opened = (await vault.call('POST', '/sessions', { key: page })).json()
    const by = opened['session_key'] as string
    refused(await ask('POST', '/proxy', { by, body: {} }), 403, 'permission_missing')
    const given = { nonce: opened['nonce']!, permissions: ['token:use'] }
    const authorized = await vault.call('POST', '/sessions/authorize', { key, body: given })
    assert.equal(authorized.status, 200, authorized.text)
    for (const it of [invoking, by]) {
      assert.equal((await ask('POST', '/proxy', { by: it, body: `{{ ${id} }}` })).status, 200)
      assert.equal(sent().at(-1)!.body, '"secret"')
    }
  })

  test('plan_insufficient for the two headers of the enterprise plan on the standard plan', async () => {
    const management = await vault.addTenant('small', 'standard')
    const made = await vault.call('POST', '/applications', {
      key: management,
      body: { name: 'a', type: 'private', permissions: ['token:use'] },
    })
    const by = made.json()['key'] as string
    for (const headers of [
      { 'BT-PROXY-KEEP-ALIVE': 'timeout=5' },
      { 'BT-PROXY-CONNECTION': 'close' },
    ]) {
      refused(await ask('POST', '/proxy', { by, headers }), 403, 'plan_insufficient')
      assert.equal((await ask('POST', '/proxy', { headers })).status, 200)
      vault.world.egress.sent.length = 0
    }
    assert.equal((await ask('POST', '/proxy', { by })).status, 200)
  })

  test('a destination that the application does not list is refused before anything is asked about it', async () => {
    const listing = { permissions: ['token:use'], destinations: ['api.example.com'] }
    const by = await vault.keyFor(listing)
    refused(await ask('POST', '/proxy', { by }), 400, 'destination_refused')
    const url = 'https://api.example.com/x'
    assert.equal((await ask('POST', '/proxy', { by, url })).status, 200)
  })
})

describe('404, 405', () => {
  test('what is not written as the path is no path', async () => {
    const spelt = await ask('GET', '/pro%78y/x')
    assert.equal(spelt.status, 404)
    assert.deepEqual(vault.world.egress.sent, [])
    for (const half of ['%zz', '%', 'a%4', 'a%4?b%41', '%u0041']) {
      refused(await ask('GET', `/proxy/${half}`), 404, 'route_not_found')
    }
    assert.equal((await ask('GET', '/proxyx')).status, 404)
  })

  test('other methods say which there are', async () => {
    const reply = await ask('HEAD', '/proxy/x')
    assert.equal(reply.status, 405)
    assert.equal(reply.headers['allow'], 'POST, GET, PUT, PATCH, DELETE')
  })
})

describe('408, 502: the destination fails before it answers', () => {
  const faults: [EgressFault, number, string][] = [
    ['timeout', 408, 'destination_timeout'],
    ['unresolved', 502, 'destination_unresolved'],
    ['unreachable', 502, 'destination_unreachable'],
    ['tls', 502, 'destination_untrusted'],
    ['reset', 502, 'destination_reset'],
    ['answer-invalid', 502, 'destination_answer_invalid'],
  ]
  for (const [fault, status, code] of faults) {
    test(`${status} ${code}`, async () => {
      vault.world.egress.reply = () => ({ fault })
      const reply = await ask('POST', '/proxy', { body: {} })
      assert.equal(vault.world.egress.sent.length, 1)
      vault.world.egress.sent.length = 0
      refused(reply, status, code)
    })
  }

  test('a name without an address is found out before anything is sent', async () => {
    vault.world.egress.refuse = () => 'unresolved'
    refused(await ask('POST', '/proxy', { body: {} }), 502, 'destination_unresolved')
    // It was looked for, out there.
    assert.deepEqual(lastEvent(), ['proxy', 'invoke', true, 'example.com', []])
    const headers = { 'BT-PROXY-DRY-RUN': 'true', 'BT-PROXY-URL': 'https://other.example' }
    refused(await ask('POST', '/proxy', { body: {}, headers }), 502, 'destination_unresolved')
    assert.deepEqual(lastEvent(), ['proxy', 'invoke', true, 'other.example', []])
    assert.equal(events().at(-1)!.dryRun, true)
  })

  test('a host is in the audit log by one name, however it is written', async () => {
    for (const host of ['EXAMPLE.com', 'example.com.', 'example.com.:443']) {
      const headers = { 'BT-PROXY-URL': `https://${host}/` }
      assert.equal((await ask('POST', '/proxy', { body: {}, headers })).status, 200)
      assert.deepEqual(lastEvent(), ['proxy', 'invoke', true, 'example.com', []])
    }
    const headers = { 'BT-PROXY-URL': 'https://example.com.:8443/' }
    assert.equal((await ask('POST', '/proxy', { body: {}, headers })).status, 200)
    assert.deepEqual(lastEvent(), ['proxy', 'invoke', true, 'example.com:8443', []])
  })
})

describe('413, 431', () => {
  test('headers_too_large for more than there may be', async () => {
    const names = Array.from({ length: HEADERS_MAX }, (_, at) => `x-${at}`)
    const headers = Object.fromEntries(names.map((it) => [it, '']))
    refused(await ask('POST', '/proxy', { headers }), 431, 'headers_too_large')
  })

  test('body_too_large for one with an expression that cannot be held', async () => {
    const id = await token('secret')
    const raw = JSON.stringify([`{{ ${id} }}`, 'x'.repeat(BODY_BYTES_MAX)])
    const headers = { 'content-type': 'application/json' }
    refused(await ask('POST', '/proxy', { raw, headers }), 413, 'body_too_large')
  })
})

describe('500, 503', () => {
  test('a fault tells nothing of itself', async () => {
    vault.world.egress.reply = () => {
      throw new Error('4242424242424242')
    }
    const reply = await ask('POST', '/proxy', { body: {} })
    vault.world.egress.sent.length = 0
    refused(reply, 500)
    assert.ok(!reply.text.includes('4242'))
  })
})

describe('the audit log', () => {
  test('has the use of each token, with the destination, before anything is sent', async () => {
    const ids = [await token('a'), await token('b')]
    let recorded: unknown
    vault.world.egress.reply = () => {
      recorded = lastEvent()
      return { status: 200 }
    }
    await ask('POST', '/proxy', {
      url: 'https://example.com:8443/x',
      body: ids.map((it) => `{{${it}}}`),
    })
    assert.deepEqual(recorded, ['token', 'use', true, 'example.com:8443', ids])
  })

  test('has the request itself where no token is used', async () => {
    await ask('GET', '/proxy')
    assert.deepEqual(lastEvent(), ['proxy', 'invoke', true, 'example.com', []])
  })
})

describe('the log', () => {
  test('says why a request was refused, by which rule, and where it was to go', async () => {
    vault.world.egress.refuse = () => 'address'
    await ask('POST', '/proxy/path?query', { body: {} })
    const [event, fields] = vault.world.logged.at(-1) as [string, JsonObject]
    assert.equal(event, 'request')
    assert.equal(fields['code'], 'destination_refused')
    assert.equal(fields['rule'], 'address')
    assert.deepEqual(fields['decisions'], ['denied proxy:invoke on - to example.com'])
    assert.doesNotMatch(JSON.stringify(fields), /path|query/)
    await ask('POST', '/proxy', { by: 'key_of_nobody' })
    const [, others] = vault.world.logged.at(-1) as [string, JsonObject]
    assert.deepEqual([others['code'], others['rule']], ['key_unknown', undefined])
  })

  for (const fault of ['timeout', 'reset'] as const) {
    test(`calls a destination that fails by ${fault} no fault of the vault`, async () => {
      vault.world.egress.reply = () => ({ fault })
      await ask('POST', '/proxy', { body: {} })
      const line = vault.world.logged.at(-1) as [string, Error, JsonObject]
      const [event, { cause }, fields] = line
      assert.equal(event, 'destination_failed')
      assert.ok(cause instanceof EgressFailure && cause.fault === fault)
      assert.equal(fields['code'], `destination_${fault}`)
    })
  }

  test('says nothing of a code where the answer is the destination’s', async () => {
    vault.world.egress.reply = () => ({ status: 502 })
    await ask('POST', '/proxy', { body: {} })
    const [event, fields] = vault.world.logged.at(-1) as [string, JsonObject]
    assert.deepEqual([event, fields['status'], fields['code']], ['request', 502, undefined])
  })
})

describe('a dry run', () => {
  const headers = {
    'BT-PROXY-DRY-RUN': 'true',
    Authorization: 'Bearer theirs',
    'X-Api-Key': 'theirs',
    'X-Plain': 'shown',
  }

  test('sends nothing and says what would be sent, by which rules', async () => {
    const id = await token('4242424242424242')
    const alias = await token('x', { id: 'an alias', containers: ['/pci/high/'] })
    const rules = [{ ...USE_ALL, priority: 3, container: '/pci/', transform: 'mask' }]
    const by = await vault.keyFor({
      rules,
      permissions: ['token:use'],
      destinations: ['example.com'],
    })
    const body = { number: `{{ ${id} | slice: 0, 6 }}`, name: `a {{ ${alias} }} b` }
    const reply = await ask('PUT', '/proxy/x?y=z', { by, headers, body })
    assert.equal(reply.status, 200, reply.text)
    assert.equal(reply.headers['bt-proxy-destination-status'], undefined)
    assert.deepEqual(vault.world.egress.sent, [])
    const { request, tokens, destination } = reply.json() as Record<string, JsonObject>
    const { headers: fields, ...rest } = request!
    const internalId = (await vault.world.store.tokens.find(vault.tenantId, [alias]))[0]!.internalId
    assert.deepEqual(rest, {
      method: 'PUT',
      url: `${URL}/x?y=z`,
      body: `{"number":"[token ${id}]","name":"a [token ${internalId}] b"}`,
    })
    const shown = new Map((fields as JsonObject[]).map((it) => [it['name'], it['value']]))
    assert.equal(shown.get('x-plain'), 'shown')
    assert.equal(shown.get('authorization'), '[not shown]')
    assert.equal(shown.get('x-api-key'), '[not shown]')
    assert.deepEqual(tokens, [
      { id, containers: ['/general/high/'], rules: [0], transform: 'reveal' },
      { id: alias, containers: ['/pci/high/'], rules: [3], transform: 'mask' },
    ])
    assert.deepEqual(destination, {
      host: 'example.com',
      rule: { name: 'public' },
      list: ['example.com'],
    })
  })

  test('is recorded as one of which nothing was sent, and nothing shown', async () => {
    const id = await token('secret')
    await ask('POST', '/proxy', { headers, body: `{{ ${id} }}` })
    assert.deepEqual(lastEvent(), ['token', 'use', true, 'example.com', [id]])
    assert.deepEqual(
      events()
        .slice(-2)
        .map((it) => [it.entityType, it.dryRun, it.shown]),
      [
        ['proxy', true, null],
        ['token', true, 'redact'],
      ],
    )
    const logs = await vault.call('GET', '/logs?size=2', { key: vault.managementKey })
    const { data } = logs.json() as { data: JsonObject[] }
    assert.deepEqual(
      data.map((it) => [it['result'], it['message']]),
      [
        ['allowed', 'Dry run: use token toward example.com, nothing was sent'],
        ['allowed', 'Dry run: invoke proxy toward example.com, nothing was sent'],
      ],
    )
  })

  test('is recorded as such also when its body is refused', async () => {
    await ask('POST', '/proxy', { headers, body: `{{ ${NOBODY} }}` })
    assert.deepEqual(lastEvent(), ['proxy', 'invoke', true, 'example.com', []])
    assert.equal(events().at(-1)!.dryRun, true)
  })

  test('is refused as the request would be', async () => {
    const by = await vault.keyFor({ rules: [{ ...USE_ALL, container: '/pci/' }] })
    const id = await token('secret')
    const mine = await token('mine', { containers: ['/pci/'] })
    const body = { mine: `{{ ${mine} }}`, other: `{{ ${id} }}` }
    const { errors } = refused(
      await ask('POST', '/proxy', { by, headers, body }),
      403,
      'permission_missing',
    )
    assert.deepEqual(errors, { other: [`The key has no right to token ${id}.`] })
    assert.deepEqual(await messages(3), [
      'Refused: use token, without proxy:invoke toward example.com',
      'Dry run: use token toward example.com, nothing was sent',
      'Dry run: invoke proxy toward example.com, nothing was sent',
    ])
    const unknown = await ask('POST', '/proxy', { headers, body: `{{ ${NOBODY} }}` })
    refused(unknown, 400, 'detokenize_tokens_unknown')
    vault.world.egress.refuse = () => 'address'
    refused(await ask('POST', '/proxy', { headers, body: {} }), 400, 'destination_refused')
  })
})

describe('a page in a browser', () => {
  const origin = 'https://shop.example'

  test('may ask, below the path as well, and send and read any header', async () => {
    const reply = await vault.call('OPTIONS', '/proxy/x', {
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    assert.equal(reply.status, 204)
    assert.equal(reply.headers['access-control-allow-methods'], 'POST, GET, PUT, PATCH, DELETE')
    const allowed = reply.headers['access-control-allow-headers']!.split(', ')
    for (const it of ['Authorization', 'BT-API-KEY', 'BT-PROXY-URL', '*'])
      assert.ok(allowed.includes(it))
    const headers = { origin }
    const answer = await ask('POST', '/proxy', { headers })
    assert.equal(answer.headers['access-control-allow-origin'], '*')
    assert.match(answer.headers['access-control-expose-headers']!, /(?:^|, )\*$/)
  })

  test('gets no more leave from the destination than from us', async () => {
    vault = await stillVault({ corsOrigins: ['https://other.example'] })
    key = await vault.keyFor({ permissions: ['token:use'] })
    vault.world.egress.reply = () => ({
      status: 200,
      headers: ['Access-Control-Allow-Origin', '*', 'Access-Control-Allow-Credentials', 'true'],
    })
    const { headers } = await ask('POST', '/proxy', { headers: { origin } })
    assert.ok(!Object.keys(headers).some((it) => it.startsWith('access-control-')))
  })
})

function events() {
  return vault.world.committed.flatMap((it) => (it.kind === 'append-audit-events' ? it.events : []))
}

function lastEvent(): unknown[] {
  const { entityType, operation, allowed, destination, entityIds } = events().at(-1)!
  return [entityType, operation, allowed, destination, [...entityIds]]
}
