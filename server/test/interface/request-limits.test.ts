/** Rate limits of public keys: what counts, for whom, and what a refused client learns. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import { LIMITS_LOGGED_MS } from '../../src/base/limits.ts'
import type { RequestLimitSettings } from '../../src/http/request-limits.ts'
import { assertRefused } from '../kit/assert-refused.ts'
import { holdBody } from '../kit/held-request.ts'
import { reactorStage } from '../kit/reactor-stage.ts'
import { portOf } from '../kit/servers.ts'
import { returned } from '../kit/still-runner.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import {
  stillVault,
  type CallOptions,
  type Reply,
  type StillVault,
  type StillVaultOptions,
} from '../kit/still-vault.ts'

const PUBLIC = { name: 'Shop', type: 'public', permissions: ['token:create'] }
const TOKEN = { type: 'token', data: 'secret' }
const PROXY = '10.1.2.3'
const [CLIENT, OTHER] = ['203.0.113.7', '203.0.113.8']

describe('a public key', () => {
  test('has no limit, unless the operator sets one', async () => {
    const { create } = await stage({})
    for (let count = 0; count < 50; count++) assert.equal((await create()).status, 201)
  })

  test('is refused above its limit, and the answer says when to come back, to a page as well', async () => {
    const { vault, create } = await stage({ perKey: 3 })
    for (let count = 0; count < 3; count++) assert.equal((await create()).status, 201)
    const reply = await create({ headers: { origin: 'https://shop.example' } })
    assertRefused(reply, 429, 'requests_max')
    assert.equal(reply.json()['title'], 'Too Many Requests')
    assert.equal(reply.headers['retry-after'], '20')
    assert.equal(reply.headers['access-control-allow-origin'], '*')
    vault.world.clock.pass(19_999)
    assert.equal((await create()).headers['retry-after'], '1')
    vault.world.clock.pass(1)
    assert.equal((await create()).status, 201)
    assertRefused(await create(), 429, 'requests_max')
  })

  test('is limited by elapsed time, not by the time of day', async () => {
    const { vault, create } = await stage({ perKey: 1 })
    await create()
    vault.world.clock.elapse(59_999)
    assertRefused(await create(), 429, 'requests_max')
    vault.world.clock.elapse(1)
    assert.equal((await create()).status, 201)
  })

  test('is refused before the body is read, and nothing is written', async () => {
    const { vault, create } = await stage({ perKey: 1 })
    await create()
    const written = vault.world.committed.length
    const headers = { 'content-type': 'text/plain' }
    assertRefused(await create({ rawBody: '{ "not":', headers }), 429, 'requests_max')
    assert.equal(vault.world.committed.length, written)
  })

  for (const { method, path, permission } of stillRoutes()) {
    if (permission === 'public') continue
    test(`is refused by ${method} ${path}`, async () => {
      const { vault, key, create } = await stage({ perKey: 1 })
      await create()
      const written = vault.world.committed.length
      const headers = { 'bt-proxy-url': 'https://api.example.com/' }
      const reply = await vault.call(method, path.replaceAll(/:\w+/g, 'x'), { key, headers })
      assert.equal(codeOf(reply), 'requests_max')
      assert.equal(reply.headers['retry-after'], '60')
      assert.equal(vault.world.committed.length, written)
      assert.deepEqual(vault.world.egress.sent, [])
    })
  }

  test('is counted for requests that are refused for another reason, and for replayed ones', async () => {
    const { vault, key, create } = await stage({ perKey: 4 })
    const again = { headers: { 'bt-idempotency-key': 'once' } }
    const ids = [(await create(again)).json()['id'], (await create(again)).json()['id']]
    assert.equal(ids[0], ids[1])
    assert.equal((await create({ rawBody: '{' })).status, 400)
    const headers = { 'bt-proxy-url': 'https://api.example.com/' }
    assert.equal((await vault.call('GET', '/proxy', { key, headers })).status, 403)
    assertRefused(await create(again), 429, 'requests_max')
  })

  test('is counted once per request, however often it is identified', async () => {
    const { vault, key, create } = await stage({ perKey: 2 })
    const release = await holdBody(vault, 'POST', '/tokens', { key, body: TOKEN })
    vault.world.clock.elapse(2_000)
    assert.equal((await release()).status, 201)
    assert.equal((await create()).status, 201)
    assertRefused(await create(), 429, 'requests_max')
  })

  test('is not counted where its application does not let the page use it', async () => {
    const { vault, create } = await stage({ perKey: 1 }, { allowed_origins: [] })
    for (let count = 0; count < 3; count++) {
      const reply = await create({ headers: { origin: 'https://evil.example' } })
      assertRefused(reply, 403, 'origin_not_allowed')
    }
    assert.equal((await create()).status, 201)
    assert.equal(limitedEvents(vault).length, 0)
  })

  test('leaves other keys alone, of the same application as well, and unknown ones', async () => {
    const { vault, id, key, create } = await stage({ perKey: 1, perAddress: 1 })
    await create()
    assertRefused(await create(), 429, 'requests_max')
    const second = await vault.call('POST', `/applications/${id}/keys`, {
      key: vault.managementKey,
      body: {},
    })
    for (const other of [second.json()['key'] as string, await vault.keyFor(PUBLIC)]) {
      assert.equal((await create({ key: other })).status, 201)
    }
    for (const [type, permission] of [
      ['private', 'token:create'],
      ['management', 'application:read'],
    ] as const) {
      const other = await vault.keyFor({ type, permissions: [permission] })
      for (let count = 0; count < 3; count++) {
        assert.notEqual((await create({ key: other })).status, 429)
      }
    }
    const unknown = key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A')
    for (let count = 0; count < 3; count++) {
      assertRefused(await create({ key: unknown }), 401, 'key_unknown')
    }
    const preflight = { headers: { origin: 'https://shop.example' } }
    assert.equal((await vault.call('OPTIONS', '/tokens', preflight)).status, 204)
  })

  test('shares its limit with the sessions it opened, until a private application authorizes them', async () => {
    const { vault, key, create } = await stage({ perKey: 3 })
    const opened = await vault.call('POST', '/sessions', { key })
    const { session_key: session, nonce } = opened.json() as Record<string, string>
    assert.equal((await create({ key: session! })).status, 403)
    assert.equal((await create()).status, 201)
    for (const it of [session!, key]) {
      assertRefused(await create({ key: it }), 429, 'requests_max')
    }
    const backend = await vault.keyFor({ permissions: ['token:create'] })
    const body = { nonce: nonce!, permissions: ['token:create'] }
    await vault.call('POST', '/sessions/authorize', { key: backend, body })
    for (let count = 0; count < 5; count++) {
      assert.equal((await create({ key: session! })).status, 201)
    }
    assertRefused(await create(), 429, 'requests_max')
  })

  test('is counted by its limit alone for code that the service runs itself', async () => {
    const { vault, create } = await stage({ perKey: 3, perAddress: 1 })
    const inProcess = vault.tenantId
    for (let count = 0; count < 3; count++) {
      assert.equal((await create({ inProcess })).status, 201)
    }
    assertRefused(await create({ inProcess }), 429, 'requests_max')
  })

  test('is not counted for a reactor that acts for its application', async () => {
    const statuses: number[] = []
    const { vault, react } = await reactorStage({
      oneServer: 'a process by itself',
      requestLimits: { perKey: 1, perAddress: 1 },
      application: PUBLIC,
      behave: async ({ apiKey }) => {
        for (let count = 0; count < 3; count++) {
          const asked = { key: apiKey!, body: TOKEN, inProcess: vault.tenantId }
          statuses.push((await vault.call('POST', '/tokens', asked)).status)
        }
        return returned({ raw: statuses })
      },
    })
    await react()
    assert.deepEqual(statuses, [201, 201, 201])
  })

  test('is no matter for callers of a proxy that needs no key', async () => {
    const { vault } = await stage({ perKey: 1, perAddress: 1 })
    const body = { name: 'open', destination_url: 'https://a.example/', require_auth: false }
    const made = await vault.call('POST', '/proxies', { key: vault.managementKey, body })
    const headers = { 'bt-proxy-key': made.json()['key'] as string }
    for (let count = 0; count < 3; count++) {
      assert.equal((await vault.call('GET', '/proxy', { headers })).status, 200)
    }
  })
})

describe('a client address', () => {
  test('is refused above its limit with the key, and others are not', async () => {
    const { create } = await stage({ perAddress: 2, perKey: 100 })
    for (const status of [201, 201, 429, 429]) {
      assert.equal((await create({ peer: CLIENT })).status, status)
    }
    assert.equal((await create({ peer: OTHER })).status, 201)
  })

  test('that is refused takes nothing of what the key may', async () => {
    const { create } = await stage({ perAddress: 2, perKey: 4 })
    for (let count = 0; count < 20; count++) await create({ peer: CLIENT })
    assert.equal((await create({ peer: OTHER })).status, 201)
  })

  test('of IPv6 is its /64', async () => {
    const { create } = await stage({ perAddress: 1 })
    assert.equal((await create({ peer: '2001:db8:1:2::1' })).status, 201)
    assert.equal((await create({ peer: '2001:db8:1:2:ffff::9' })).status, 429)
    assert.equal((await create({ peer: '2001:db8:1:3::1' })).status, 201)
  })

  test('of IPv4 is the same, written as IPv6', async () => {
    const { create } = await stage({ perAddress: 1 })
    assert.equal((await create({ peer: `::ffff:${CLIENT}` })).status, 201)
    assert.equal((await create({ peer: CLIENT })).status, 429)
  })

  const spoofed: Record<string, string>[] = [
    { 'x-forwarded-for': '192.0.2.9' },
    { 'x-forwarded-for': `${PROXY}, 192.0.2.9` },
    { forwarded: 'for=192.0.2.9' },
    { 'x-real-ip': '192.0.2.9' },
  ]
  for (const headers of spoofed) {
    test(`is that of the connection, whatever it says: ${JSON.stringify(headers)}`, async () => {
      const { create } = await stage({ perAddress: 1 })
      assert.equal((await create({ peer: CLIENT })).status, 201)
      assert.equal((await create({ peer: CLIENT, headers })).status, 429)
    })
  }

  const behind: [what: string, first: Record<string, string>, second: Record<string, string>][] = [
    [
      'whatever it writes in front of what the proxy appends',
      { 'x-forwarded-for': CLIENT },
      { 'x-forwarded-for': `192.0.2.9, ${PROXY}, ${CLIENT}` },
    ],
    [
      'by Forwarded, whatever it writes in front',
      { forwarded: `for=${CLIENT}` },
      { forwarded: `for=192.0.2.9, for="${CLIENT}:80";proto=https` },
    ],
    [
      'behind two proxies',
      { 'x-forwarded-for': CLIENT },
      { 'x-forwarded-for': `${CLIENT}, 10.1.7.7` },
    ],
    [
      'whatever port it uses',
      { 'x-forwarded-for': `${CLIENT}:1024` },
      { 'x-forwarded-for': `[::ffff:${CLIENT}]:1025` },
    ],
    [
      'and that of the proxy, if the header that the proxy passes on disagrees',
      { 'x-forwarded-for': CLIENT, forwarded: 'for=192.0.2.8' },
      { 'x-forwarded-for': CLIENT, forwarded: 'for=192.0.2.9' },
    ],
    [
      'and that of the proxy, if the proxy hides it',
      { forwarded: 'for=192.0.2.8, for=unknown' },
      { forwarded: 'for=192.0.2.9, for=_hidden' },
    ],
  ]
  for (const [what, first, second] of behind) {
    test(`is one behind a trusted proxy ${what}`, async () => {
      const { create } = await stage({ perAddress: 1 }, {}, { trustedProxies: ['10.1.0.0/16'] })
      assert.equal((await create({ peer: PROXY, headers: first })).status, 201)
      assert.equal((await create({ peer: PROXY, headers: second })).status, 429)
      const elsewhere = { 'x-forwarded-for': OTHER }
      assert.equal((await create({ peer: PROXY, headers: elsewhere })).status, 201)
    })
  }

  test('is the last one of a header that was sent twice, over a real connection', async () => {
    const { vault, key } = await stage({ perAddress: 1 }, {}, { trustedProxies: ['127.0.0.1'] })
    await vault.servers.listen('127.0.0.1')
    try {
      const send = async (...from: string[]): Promise<string> => {
        const socket = connect(portOf(vault.app), '127.0.0.1')
        const lines = from.map((it) => `X-Forwarded-For: ${it}`)
        const headers = ['Host: localhost', `BT-API-KEY: ${key}`, 'Connection: close', ...lines]
        // Not end(): a client that closes its half has gone away.
        socket.write(`GET /tokens HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
        return (await textOf(socket)).slice(9, 12)
      }
      assert.equal(await send('192.0.2.1', CLIENT), '403')
      assert.equal(await send('192.0.2.2', '192.0.2.3', CLIENT), '429')
      assert.equal(await send(CLIENT, OTHER), '403')
    } finally {
      await vault.close()
    }
  })
})

test('the log says once a minute which key is over which limit, and each line of a request too', async () => {
  const { vault, id, create } = await stage({ perKey: 3, perAddress: 2 })
  for (let count = 0; count < 5; count++) await create({ peer: CLIENT })
  for (let count = 0; count < 5; count++) await create({ peer: OTHER })
  const [event, fields] = vault.world.logged.at(-1) as [string, JsonObject]
  const { code, limit, application_id, key_id } = fields
  assert.deepEqual([event, code, limit], ['request', 'requests_max', 'key'])
  assert.equal(application_id, id)
  const first = { tenant: vault.tenantId, application: id, key: key_id, limit: 'address' }
  assert.deepEqual(limitedEvents(vault), [['requests_limited', first]])
  vault.world.clock.pass(LIMITS_LOGGED_MS)
  for (let count = 0; count < 5; count++) await create({ peer: CLIENT })
  assert.equal(limitedEvents(vault).length, 2)
})

interface LimitStage {
  readonly vault: StillVault
  /** The id of the public application, and its key. */
  readonly id: string
  readonly key: string
  /** Asks for a token with the public key, unless the options say otherwise. */
  readonly create: (options?: CallOptions) => Promise<Reply>
}

/** A vault with these limits, and a public application. */
async function stage(
  requestLimits: Partial<RequestLimitSettings>,
  application: JsonObject = {},
  options: StillVaultOptions = {},
): Promise<LimitStage> {
  const vault = await stillVault({ oneServer: 'a process by itself', requestLimits, ...options })
  const body = { ...PUBLIC, ...application }
  const made = await vault.call('POST', '/applications', { key: vault.managementKey, body })
  const { id, key } = made.json() as { id: string; key: string }
  const create = (more: CallOptions = {}): Promise<Reply> =>
    vault.call('POST', '/tokens', { key, body: TOKEN, ...more })
  return { vault, id, key, create }
}

function codeOf(reply: Reply): unknown {
  const { code, proxy_error } = reply.json() as { code?: string; proxy_error?: JsonObject }
  assert.equal(reply.status, 429, reply.text)
  return proxy_error?.['code'] ?? code
}

function limitedEvents({ world }: StillVault): unknown[] {
  return (world.logged as [string][]).filter(([event]) => event === 'requests_limited')
}
