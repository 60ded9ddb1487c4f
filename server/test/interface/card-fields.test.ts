/** What the vault serves for card fields: scripts for any page, and documents for the pages of one application. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { hashApiKey } from '../../src/access/api-key.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { assertRefused } from '../kit/assert-refused.ts'
import { STILL_BUILD, STILL_BUILDS } from '../kit/still-builds.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'

const SHOP = 'https://shop.example'
const PUBLIC = { name: 'Shop', type: 'public', permissions: ['token:create'] }

describe('the script', () => {
  let vault: StillVault
  before(
    async () =>
      void (vault = await stillVault({
        fieldBuilds: STILL_BUILDS,
        corsOrigins: ['https://a.example'],
      })),
  )
  after(() => vault.close())

  test('without a hash leads to the current build, and is asked for again each time', async () => {
    const reply = await vault.call('GET', '/fields/v1/fields.js', { headers: { origin: SHOP } })
    assert.equal(reply.status, 302)
    assert.equal(reply.headers['location'], `/fields/v1/${STILL_BUILD}/fields.js`)
    assert.equal(reply.headers['cache-control'], 'no-cache')
    assert.equal(reply.headers['access-control-allow-origin'], '*')
  })

  for (const [file, type] of [
    ['fields.js', 'text/javascript; charset=utf-8'],
    ['frame.js', 'text/javascript; charset=utf-8'],
    ['frame.css', 'text/css; charset=utf-8'],
  ]) {
    test(`of a build never changes, and any page may load it: ${file}`, async () => {
      const path = `/fields/v1/${STILL_BUILD}/${file}`
      const reply = await vault.call('GET', path, { headers: { origin: SHOP } })
      assert.equal(reply.text, `content of ${file}`)
      assert.equal(reply.headers['content-type'], type)
      assert.equal(reply.headers['cache-control'], 'public, max-age=31536000, immutable')
      assert.equal(reply.headers['access-control-allow-origin'], '*')
      assert.equal(reply.headers['cross-origin-resource-policy'], 'cross-origin')
      assert.equal(reply.headers['x-content-type-options'], 'nosniff')
    })
  }

  for (const accepted of ['gzip, deflate, br', 'br;q=1.0, gzip;q=0.5', '*']) {
    test(`is compressed for a browser that accepts ${accepted}`, async () => {
      const path = `/fields/v1/${STILL_BUILD}/fields.js`
      const reply = await vault.call('GET', path, { headers: { 'accept-encoding': accepted } })
      assert.equal(reply.headers['content-encoding'], 'gzip')
      assert.equal(reply.headers['vary'], 'Accept-Encoding')
      assert.equal(String(gunzipSync(reply.bytes)), 'content of fields.js')
      assert.equal(Number(reply.headers['content-length']), reply.bytes.length)
    })
  }

  for (const accepted of ['br', 'gzip;q=0', 'gzip;q=0.0, br', 'xgzip', 'identity']) {
    test(`is not compressed for a client that accepts ${accepted}`, async () => {
      const path = `/fields/v1/${STILL_BUILD}/fields.js`
      const reply = await vault.call('GET', path, { headers: { 'accept-encoding': accepted } })
      assert.equal(reply.headers['content-encoding'], undefined)
      assert.equal(reply.text, 'content of fields.js')
    })
  }

  test('is not there under any other name', async () => {
    for (const path of [
      `/fields/v1/fedcba9876543210/fields.js`,
      `/fields/v1/${STILL_BUILD}/constructor`,
      `/fields/v1/${STILL_BUILD}/manifest.json`,
      `/fields/v1/${STILL_BUILD}/..%2F..%2Fbuild.ts`,
      `/fields/v2/${STILL_BUILD}/fields.js`,
    ]) {
      assertRefused(await vault.call('GET', path), 404, 'route_not_found')
    }
  })

  test('is not there if there is no build', async () => {
    const bare = await stillVault()
    assertRefused(await bare.call('GET', '/fields/v1/fields.js'), 404, 'route_not_found')
    await bare.close()
  })
})

describe('the document of an iframe', () => {
  let vault: StillVault
  before(async () => void (vault = await stillVault({ fieldBuilds: STILL_BUILDS })))
  after(() => vault.close())

  async function frameFor(application: JsonObject): Promise<Reply> {
    return await vault.call('GET', pathFor(await vault.keyFor(application)))
  }

  test('can be embedded by the pages of its application, and no others', async () => {
    const reply = await frameFor({ ...PUBLIC, allowed_origins: [SHOP, 'http://localhost:3000'] })
    assert.equal(reply.status, 200)
    assert.equal(ancestorsOf(reply), `${SHOP} http://localhost:3000`)
    assert.match(reply.text, /name="allowed-origins" content="https:\/\/shop\.example http:\/\/loc/)
  })

  test('runs only the vault’s script, calls only the vault, and has no sink for markup', async () => {
    const reply = await frameFor({ ...PUBLIC, allowed_origins: [SHOP] })
    const policy = String(reply.headers['content-security-policy']).split('; ')
    assert.deepEqual(policy.slice(0, -1), [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ])
    assert.doesNotMatch(reply.text, /<script(?![^>]*src=)|<style|style=| on[a-z]+=/)
    assert.equal(reply.headers['referrer-policy'], 'no-referrer')
    assert.equal(reply.headers['x-content-type-options'], 'nosniff')
  })

  test('can be part of an isolated page', async () => {
    const reply = await frameFor({ ...PUBLIC, allowed_origins: [SHOP] })
    assert.equal(reply.headers['cross-origin-embedder-policy'], 'require-corp')
    assert.equal(reply.headers['cross-origin-resource-policy'], 'cross-origin')
  })

  const closed: [about: string, application: JsonObject][] = [
    ['no list', PUBLIC],
    ['an empty list', { ...PUBLIC, allowed_origins: [] }],
    ['a private key', { ...PUBLIC, type: 'private' }],
    ['a management key', { name: 'm', type: 'management', permissions: ['tenant:read'] }],
  ]
  for (const [about, application] of closed) {
    test(`can be embedded nowhere with ${about}`, async () =>
      assertClosed(await frameFor(application)))
  }

  test('can be embedded nowhere with a key that does not exist, or with no hash', async () => {
    for (const it of ['0'.repeat(64), 'x', '__proto__', `${'0'.repeat(63)}%00`]) {
      assertClosed(await vault.call('GET', `/fields/v1/${STILL_BUILD}/frame/${it}`))
    }
  })

  test('can be embedded nowhere once its application has expired', async () => {
    const expires_at = new Date(vault.world.clock.now() + 60_000).toISOString()
    const key = await vault.keyFor({ ...PUBLIC, allowed_origins: [SHOP], expires_at })
    assert.equal((await vault.call('GET', pathFor(key))).status, 200)
    vault.world.clock.pass(60_000)
    assertClosed(await vault.call('GET', pathFor(key)))
  })

  test('follows the list at once, and no cache keeps it', async () => {
    const made = await vault.call('POST', '/applications', {
      key: vault.managementKey,
      body: { ...PUBLIC, allowed_origins: [SHOP] },
    })
    const { id, key } = made.json() as { id: string; key: string }
    const path = pathFor(key)
    assert.equal((await vault.call('GET', path)).headers['cache-control'], 'no-store')
    await vault.call('PUT', `/applications/${id}`, {
      key: vault.managementKey,
      body: { name: 'Shop', permissions: ['token:create'], allowed_origins: ['https://b.example'] },
    })
    assert.equal(ancestorsOf(await vault.call('GET', path)), 'https://b.example')
    await vault.call('DELETE', `/applications/${id}`, { key: vault.managementKey })
    assertClosed(await vault.call('GET', path))
  })

  test('keeps what only a changed database can hold out of its headers', async () => {
    const attacked = await stillVault({
      fieldBuilds: STILL_BUILDS,
      change: (world) => {
        const { applications } = world.store
        const findByKeyHash: typeof applications.findByKeyHash = async (hash) => {
          const holder = await applications.findByKeyHash(hash)
          if (holder === null || holder.application.allowedOrigins === null) return holder
          const allowedOrigins = [
            'https://a.example; script-src *',
            '*',
            'https://b.example"><script>',
            SHOP,
          ]
          return { ...holder, application: { ...holder.application, allowedOrigins } }
        }
        return {
          ...world,
          store: { ...world.store, applications: { ...applications, findByKeyHash } },
        }
      },
    })
    const key = await attacked.keyFor({ ...PUBLIC, allowed_origins: [SHOP] })
    const reply = await attacked.call('GET', pathFor(key))
    assert.equal(ancestorsOf(reply), SHOP)
    assert.doesNotMatch(reply.text, /a\.example|b\.example/)
    await attacked.close()
  })
})

function pathFor(key: string): string {
  return `/fields/v1/${STILL_BUILD}/frame/${hashApiKey(key).toString('hex')}`
}

function ancestorsOf({ headers }: Reply): string | undefined {
  return /frame-ancestors (.+)$/.exec(String(headers['content-security-policy']))?.[1]
}

function assertClosed(reply: Reply): void {
  assert.equal(reply.status, 404)
  assert.equal(ancestorsOf(reply), "'none'")
  assert.match(reply.text, /name="allowed-origins" content=""/)
}
