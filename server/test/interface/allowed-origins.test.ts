/** Lists of allowed origins: how applications get them, and what pages of other origins may do with their keys. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import { ORIGIN_CHARS_MAX, ORIGINS_MAX } from '../../src/base/limits.ts'
import { assertRefused } from '../kit/assert-refused.ts'
import { holdBody } from '../kit/held-request.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import {
  stillVault,
  type Reply,
  type StillVault,
  type StillVaultOptions,
} from '../kit/still-vault.ts'
import { pathsOf } from '../kit/token-stage.ts'

const SHOP = 'https://shop.example'
const PUBLIC = { name: 'Shop', type: 'public', permissions: ['token:create'] }
const LISTED = { ...PUBLIC, allowed_origins: [SHOP, 'http://localhost:3000'] }
const TOKEN = { type: 'token', data: 'secret' }

describe('POST /applications answers', () => {
  test('201 with its origins as browsers write them, each once, after the destinations', async () => {
    const allowed_origins = ['HTTPS://Shop.example:443/', 'http://localhost:3000', SHOP]
    const reply = await post(await stillVault(), { ...PUBLIC, destinations: [], allowed_origins })
    assert.equal(reply.status, 201, reply.text)
    assert.deepEqual(reply.json()['allowed_origins'], LISTED.allowed_origins)
    const members = Object.keys(reply.json())
    assert.equal(members[members.indexOf('destinations') + 1], 'allowed_origins')
  })

  for (const origin of ['http://127.0.0.1:3000', 'https://xn--bcher-kva.example']) {
    test(`201 with ${origin}`, async () => {
      const reply = await post(await stillVault(), { ...PUBLIC, allowed_origins: [origin] })
      assert.deepEqual(reply.json()['allowed_origins'], [origin])
    })
  }

  test('201 with an empty list, which is another thing than none', async () => {
    const vault = await stillVault()
    const none = await post(vault, { ...PUBLIC, allowed_origins: [] })
    assert.deepEqual(none.json()['allowed_origins'], [])
    for (const body of [PUBLIC, { ...PUBLIC, allowed_origins: null }]) {
      assert.equal('allowed_origins' in (await post(vault, body)).json(), false)
    }
  })

  test('201 with as many as there may be', async () => {
    const allowed_origins = origins(ORIGINS_MAX)
    const reply = await post(await stillVault(), { ...PUBLIC, allowed_origins })
    assert.deepEqual(reply.json()['allowed_origins'], allowed_origins)
  })

  const wrong: [about: string, allowed_origins: unknown, path: string][] = [
    ['a path', [SHOP, `${SHOP}/checkout`], 'allowed_origins[1]'],
    ['a host name', ['shop.example'], 'allowed_origins[0]'],
    ['plain HTTP of another machine', ['http://shop.example'], 'allowed_origins[0]'],
    ['plain HTTP of a name like localhost', ['http://localhost.example'], 'allowed_origins[0]'],
    ['every origin', ['*'], 'allowed_origins[0]'],
    ['all below a name', ['https://*.shop.example'], 'allowed_origins[0]'],
    ['the origin of a sandboxed page', ['null'], 'allowed_origins[0]'],
    ['an IPv6 address', ['https://[2001:db8::1]'], 'allowed_origins[0]'],
    ['the IPv6 address of this machine', ['http://[::1]:3000'], 'allowed_origins[0]'],
    ['another scheme', ['file:///'], 'allowed_origins[0]'],
    ['a user', ['https://me@shop.example'], 'allowed_origins[0]'],
    ['another directive', [`${SHOP}; script-src *`], 'allowed_origins[0]'],
    ['another directive without a space', [`${SHOP};sandbox`], 'allowed_origins[0]'],
    ['another policy', [`${SHOP},sandbox`], 'allowed_origins[0]'],
    ['a quotation mark', [`https://'self'`], 'allowed_origins[0]'],
    ['no text', [null], 'allowed_origins[0]'],
    ['no list', SHOP, 'allowed_origins'],
    ['a long one', [`https://${'a'.repeat(ORIGIN_CHARS_MAX)}`], 'allowed_origins[0]'],
    ['too many', origins(ORIGINS_MAX + 1), 'allowed_origins'],
  ]
  for (const [about, allowed_origins, path] of wrong) {
    test(`400 to ${about}`, async () => {
      const reply = await post(await stillVault(), { ...PUBLIC, allowed_origins } as JsonObject)
      assert.equal(reply.status, 400)
      assert.deepEqual(pathsOf(reply), [path])
    })
  }

  test('400 to a name of other letters, and says how browsers write it', async () => {
    const body = { ...PUBLIC, allowed_origins: ['https://bücher.example'] }
    const reply = await post(await stillVault(), body)
    assert.equal(reply.status, 400)
    assert.match(reply.text, /in punycode, such as https:\/\/xn--bcher-kva\.example/)
  })

  for (const [type, permission] of [
    ['private', 'token:create'],
    ['management', 'log:read'],
  ] as const) {
    test(`400 to some for a ${type} application`, async () => {
      const body = { name: 'a', type, permissions: [permission], allowed_origins: [] }
      const reply = await post(await stillVault(), body)
      assert.equal(reply.status, 400)
      assert.deepEqual(pathsOf(reply), ['allowed_origins'])
    })
  }
})

describe('PUT /applications/{id} answers', () => {
  test('200 with the origins kept, where they are not mentioned', async () => {
    const vault = await stillVault()
    const id = (await post(vault, LISTED)).json()['id'] as string
    const { allowed_origins: _, ...body } = LISTED
    const reply = await put(vault, id, body)
    assert.deepEqual(reply.json()['allowed_origins'], LISTED.allowed_origins)
  })

  test('200 with the whole object sent back, nothing lost', async () => {
    const vault = await stillVault()
    const { key: _, ...made } = (await post(vault, LISTED)).json()
    const reply = await put(vault, made['id'] as string, made)
    const { modified_at: __, modified_by: ___, ...rest } = reply.json()
    assert.deepEqual(rest, made)
  })

  test('200 with others, with none allowed, and with the limit lifted by null', async () => {
    const vault = await stillVault()
    const id = (await post(vault, LISTED)).json()['id'] as string
    const others = await put(vault, id, { ...PUBLIC, allowed_origins: ['https://Other.example'] })
    assert.deepEqual(others.json()['allowed_origins'], ['https://other.example'])
    const none = await put(vault, id, { ...PUBLIC, allowed_origins: [] })
    assert.deepEqual(none.json()['allowed_origins'], [])
    const lifted = await put(vault, id, { ...PUBLIC, allowed_origins: null })
    assert.equal('allowed_origins' in lifted.json(), false)
  })
})

describe('a key whose application lists origins', () => {
  const allowed: [from: string, headers: Record<string, string>, options?: StillVaultOptions][] = [
    ['a page of one of them', { origin: SHOP }],
    ['no page', {}],
    [
      'a page of the service, on this machine',
      { origin: 'http://localhost:4400', host: 'localhost:4400' },
    ],
    [
      'a page of the service, by its public URL',
      { origin: 'https://vault.example' },
      { publicUrl: 'https://vault.example' },
    ],
    [
      'card fields at a host name of their own',
      { origin: 'https://fields.example' },
      { publicUrl: 'https://vault.example', fieldsUrl: 'https://fields.example' },
    ],
  ]
  for (const [from, headers, options] of allowed) {
    test(`works from ${from}`, async () => {
      const { vault, key } = await stage(options)
      assert.equal((await create(vault, key, headers)).status, 201)
    })
  }

  const refused: [from: string, headers: Record<string, string>, options?: StillVaultOptions][] = [
    ['a page of another', { origin: 'https://evil.example' }],
    ['a page of the same host, unencrypted', { origin: 'http://shop.example' }],
    ['a page of the same host, on another port', { origin: 'https://shop.example:8443' }],
    ['a page below the host', { origin: 'https://a.shop.example' }],
    ['a page whose host begins alike', { origin: 'https://shop.example.evil.example' }],
    ['a sandboxed page', { origin: 'null' }],
    ['an empty origin', { origin: '' }],
    [
      'a page whose own name leads to the service',
      { origin: 'http://evil.example:4400', host: 'evil.example:4400' },
    ],
    [
      'a page of this machine, where the service has a public URL',
      { origin: 'http://localhost:4400', host: 'localhost:4400' },
      { publicUrl: 'https://vault.example' },
    ],
    [
      'a page that an untrusted proxy vouches for',
      { origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' },
    ],
  ]
  for (const [from, headers, options] of refused) {
    test(`is refused from ${from}`, async () => {
      const { vault, key } = await stage(options)
      assertRefused(await create(vault, key, headers), 403, 'origin_not_allowed')
    })
  }

  test('is refused with advice where the page may be our own, under a name that no setting tells', async () => {
    const { vault, key } = await stage()
    const headers = { origin: 'https://vault.example', host: 'vault.example' }
    const reply = await create(vault, key, headers)
    assertRefused(reply, 403, 'origin_not_allowed')
    assert.match(reply.text, /set SYMBOLON_PUBLIC_URL or SYMBOLON_FIELDS_URL/)
    const foreign = await create(vault, key, {
      origin: 'https://evil.example',
      host: 'vault.example',
    })
    assert.doesNotMatch(foreign.text, /SYMBOLON/)
  })

  test('is refused before the body is read, and the page can read why', async () => {
    const { vault, key } = await stage()
    const written = vault.world.committed.length
    const reply = await vault.call('POST', '/tokens', {
      key,
      rawBody: '{ "not":',
      headers: { origin: 'https://evil.example', 'content-type': 'application/json' },
    })
    assertRefused(reply, 403, 'origin_not_allowed')
    assert.equal(reply.headers['access-control-allow-origin'], '*')
    assert.equal(vault.world.committed.length, written)
  })

  test('is logged with its application and the page when it is refused', async () => {
    const { vault, key, id } = await stage()
    const caller = async (origin: string) => {
      await create(vault, key, { origin })
      const [event, fields] = vault.world.logged.at(-1) as [string, JsonObject]
      const { code, tenant_id, application_id, key_id } = fields
      assert.deepEqual([event, code], ['request', 'origin_not_allowed'])
      assert.deepEqual([tenant_id, application_id], [vault.tenantId, id])
      assert.equal(typeof key_id, 'string')
      return fields['origin']
    }
    assert.equal(await caller('https://evil.example'), 'https://evil.example')
    assert.equal(await caller('null'), 'null')
    assert.equal(await caller('\u009b31m\u00ff'), '?31m?')
    assert.equal(await caller('x'.repeat(5000)), 'x'.repeat(ORIGIN_CHARS_MAX))
    await create(vault, key, { origin: SHOP })
    assert.equal((vault.world.logged.at(-1) as [string, JsonObject])[1]['origin'], undefined)
  })

  for (const route of stillRoutes()) {
    const { method, path, permission } = route
    if (permission === 'public') continue
    test(`is refused by ${method} ${path}`, async () => {
      const { vault, key } = await stage()
      const written = vault.world.committed.length
      const reply = await vault.call(method, path.replaceAll(/:\w+/g, 'x'), {
        key,
        headers: { origin: 'https://evil.example', 'bt-proxy-url': 'https://api.example.com/' },
      })
      const { code, proxy_error } = reply.json() as { code?: string; proxy_error?: JsonObject }
      assert.equal(reply.status, 403)
      assert.equal(proxy_error?.['code'] ?? code, 'origin_not_allowed')
      assert.equal(vault.world.committed.length, written)
      assert.deepEqual(vault.world.egress.sent, [])
    })
  }

  test('takes a change of the list from the next request on', async () => {
    const { vault, key, id } = await stage()
    await put(vault, id, { ...PUBLIC, allowed_origins: ['https://other.example'] })
    vault.servers.expireCaches()
    assertRefused(await create(vault, key, { origin: SHOP }), 403, 'origin_not_allowed')
    assert.equal((await create(vault, key, { origin: 'https://other.example' })).status, 201)
    await put(vault, id, { ...PUBLIC, allowed_origins: null })
    vault.servers.expireCaches()
    assert.equal((await create(vault, key, { origin: SHOP })).status, 201)
  })

  test('creates nothing for a page whose origin is taken off the list while it holds its body back', async () => {
    const { vault, key, id } = await stage()
    const options = { key, body: TOKEN, headers: { origin: SHOP } }
    const release = await holdBody(vault, 'POST', '/tokens', options)
    await put(vault, id, { ...PUBLIC, allowed_origins: [] })
    const written = vault.world.committed.length
    assertRefused(await release(), 403, 'origin_not_allowed')
    assert.equal(vault.world.committed.length, written)
  })

  test('opens sessions whose keys are held to the same origins', async () => {
    const { vault, key } = await stage()
    const opened = await vault.call('POST', '/sessions', { key, headers: { origin: SHOP } })
    const { session_key, nonce } = opened.json() as { session_key: string; nonce: string }
    const backend = await vault.keyFor({
      name: 'Backend',
      type: 'private',
      permissions: ['token:create'],
    })
    const body = { nonce, permissions: ['token:create'] }
    const granted = await vault.call('POST', '/sessions/authorize', { key: backend, body })
    assert.equal(granted.status, 200, granted.text)
    const evil = { origin: 'https://evil.example' }
    assertRefused(await create(vault, session_key, evil), 403, 'origin_not_allowed')
    assert.equal((await create(vault, session_key, { origin: SHOP })).status, 201)
  })

  test('leaves preflights and keys without a list alone', async () => {
    const { vault } = await stage()
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    assert.equal((await vault.call('OPTIONS', '/tokens', { headers })).status, 204)
    const key = await vault.keyFor(PUBLIC)
    assert.equal((await create(vault, key, { origin: 'https://evil.example' })).status, 201)
  })
})

async function stage(
  options: StillVaultOptions = {},
): Promise<{ vault: StillVault; key: string; id: string }> {
  const vault = await stillVault(options)
  const made = (await post(vault, LISTED)).json() as { key: string; id: string }
  return { vault, ...made }
}

function create(vault: StillVault, key: string, headers: Record<string, string>): Promise<Reply> {
  return vault.call('POST', '/tokens', { key, body: TOKEN, headers })
}

function post(vault: StillVault, body: JsonObject): Promise<Reply> {
  return vault.call('POST', '/applications', { key: vault.managementKey, body })
}

function put(vault: StillVault, id: string, body: JsonObject): Promise<Reply> {
  return vault.call('PUT', `/applications/${id}`, { key: vault.managementKey, body })
}

function origins(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `https://shop-${n}.example`)
}
