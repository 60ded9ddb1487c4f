import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stillRoutes } from '../kit/still-routes.ts'
import { tokenStage } from '../kit/token-stage.ts'

const ROUTES = stillRoutes()
const ORIGIN = 'https://shop.example'
const EXPOSED =
  'BT-TRACE-ID, BT-PROXY-DESTINATION-STATUS, BT-PROXY-EXPRESSIONS, Location, Retry-After'
/** Request headers of the browser clients beyond those every browser may send. */
const SENT = [
  'BT-API-KEY',
  'BT-TRACE-ID',
  'BT-CLIENT-USER-AGENT',
  'BT-IDEMPOTENCY-KEY',
  'BT-TRANSACTION-ID',
  'Content-Type',
]

describe('a preflight', () => {
  for (const path of new Set(ROUTES.map((it) => it.path))) {
    test(`for ${path} is 204 without a key, and allows what there is`, async () => {
      const { vault } = await tokenStage()
      const url = path.replaceAll(/:[a-z]+/gi, 'x')
      const reply = await vault.call('OPTIONS', url, {
        headers: { origin: ORIGIN, 'access-control-request-method': 'POST' },
      })
      assert.equal(reply.status, 204)
      assert.equal(reply.text, '')
      assert.equal(reply.headers['access-control-allow-origin'], '*')
      assert.equal(reply.headers['access-control-max-age'], '3600')
      const methods = reply.headers['access-control-allow-methods']!.split(', ')
      // A path such as /tokens/search is also that of a token with this id.
      const there: string[] = ROUTES.filter((it) => {
        return new RegExp(`^${it.path.replaceAll(/:[a-z]+/gi, '[^/]+')}$`).test(url)
      }).map((it) => it.method)
      if (there.includes('GET') && path !== '/proxy') there.push('HEAD')
      assert.deepEqual(methods.toSorted(), [...new Set(there)].toSorted())
      const allowed = reply.headers['access-control-allow-headers']!.toLowerCase().split(', ')
      for (const name of SENT) assert.ok(allowed.includes(name.toLowerCase()), name)
    })
  }

  test('with a body, whatever its type, is 204 too', async () => {
    const { vault } = await tokenStage()
    for (const type of ['application/json', 'text/plain']) {
      const headers = { origin: ORIGIN, 'content-type': type }
      const reply = await vault.call('OPTIONS', '/tokens', { headers, rawBody: '{}' })
      assert.equal(reply.status, 204)
    }
  })

  test('for a path where there is nothing is 404', async () => {
    const { vault } = await tokenStage()
    assert.equal(
      (await vault.call('OPTIONS', '/nowhere', { headers: { origin: ORIGIN } })).status,
      404,
    )
  })
})

describe('an answer to a browser', () => {
  test('is open to every origin, and shows it the headers it needs', async () => {
    const { vault, key } = await tokenStage()
    const reply = await vault.call('POST', '/tokenize', {
      key,
      body: 'x',
      headers: { origin: ORIGIN },
    })
    assert.equal(reply.status, 200)
    assert.equal(reply.headers['access-control-allow-origin'], '*')
    assert.equal(reply.headers['access-control-expose-headers'], EXPOSED)
    assert.equal(reply.headers['access-control-allow-credentials'], undefined)
  })

  for (const [status, options] of [
    [401, { body: 'x' }],
    [400, { rawBody: '{' }],
    [404, { path: '/nowhere' }],
    [405, { path: '/permissions' }],
  ] as const) {
    test(`is open when it is an error, such as ${status}`, async () => {
      const { vault, key } = await tokenStage()
      const { path, ...rest } = { path: '/tokenize', ...options }
      const reply = await vault.call('POST', path, {
        ...(status === 401 ? {} : { key }),
        ...rest,
        headers: { origin: ORIGIN },
      })
      assert.equal(reply.status, status)
      assert.equal(reply.headers['access-control-allow-origin'], '*')
    })
  }

  test('says nothing of origins to a client that does not send one', async () => {
    const { vault, key } = await tokenStage()
    const reply = await vault.call('POST', '/tokenize', { key, body: 'x' })
    assert.equal(reply.headers['access-control-allow-origin'], undefined)
  })
})

describe('with origins named by the operator, an answer', () => {
  const corsOrigins = [ORIGIN, 'http://localhost:3000']

  for (const origin of corsOrigins) {
    test(`is open to ${origin}, and to it alone`, async () => {
      const { vault, key } = await tokenStage({ corsOrigins })
      for (const method of ['POST', 'OPTIONS'] as const) {
        const body = method === 'POST' ? { key, body: 'x' } : {}
        const reply = await vault.call(method, '/tokenize', { ...body, headers: { origin } })
        assert.equal(reply.headers['access-control-allow-origin'], origin)
        assert.equal(reply.headers['vary'], 'Origin')
      }
    })
  }

  for (const origin of [
    'https://shop.example.org',
    'http://shop.example',
    'null',
    'https://shop.example/',
  ]) {
    test(`is closed to ${origin}`, async () => {
      const { vault, key } = await tokenStage({ corsOrigins })
      for (const method of ['POST', 'OPTIONS'] as const) {
        const body = method === 'POST' ? { key, body: 'x' } : {}
        const reply = await vault.call(method, '/tokenize', { ...body, headers: { origin } })
        assert.equal(reply.headers['access-control-allow-origin'], undefined)
        assert.equal(reply.headers['vary'], 'Origin')
      }
    })
  }
})
