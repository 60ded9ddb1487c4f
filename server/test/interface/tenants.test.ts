import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TenantSettings } from '../../src/base/access.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { TENANT_CLEARING_MS } from '../../src/base/limits.ts'
import { clearDeletedTenants } from '../../src/tenants/clear-deleted-tenants.ts'
import { withCommit } from '../../src/ports/with-commit.ts'
import { assertRefused } from '../kit/assert-refused.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'

const CARD = { type: 'card', data: { number: '4242424242424242' } }
const DAY_MS = 24 * 60 * 60 * 1000

function put(vault: StillVault, body: JsonObject, key = vault.managementKey): Promise<Reply> {
  return vault.call('PUT', '/tenants/self', { key, body })
}

describe('GET /tenants/self', () => {
  test('is the tenant of the key, and never another', async () => {
    const vault = await stillVault()
    const theirs = await vault.addTenant('theirs')
    const own = await vault.call('GET', '/tenants/self', { key: vault.managementKey })
    const application = await vault.call('GET', '/applications/key', { key: vault.managementKey })
    const { id } = application.json()
    assert.deepEqual(own.json(), {
      id: vault.tenantId,
      owner_id: id,
      name: 'first',
      settings: {
        fingerprint_tokens: 'false',
        deduplicate_tokens: 'false',
        deduplicate_public: 'false',
        deduplicate_unreadable: 'true',
        public_body_bytes_max: '262144',
      },
      created_by: id,
      created_at: '2026-03-01T12:00:00.000+00:00',
    })
    const other = await vault.call('GET', '/tenants/self', { key: theirs })
    assert.equal(other.json()['name'], 'theirs')
  })
})

describe('PUT /tenants/self', () => {
  test('renames, and leaves settings that are not named as they are', async () => {
    const vault = await stillVault()
    const first = await put(vault, { name: 'x', settings: { fingerprint_tokens: 'true' } })
    assert.equal(first.status, 200)
    const second = await put(vault, { name: 'é', settings: { deduplicate_tokens: true } })
    const third = await put(vault, { name: 'z' })
    const others = {
      deduplicate_public: 'false',
      deduplicate_unreadable: 'true',
      public_body_bytes_max: '262144',
    }
    assert.deepEqual(second.json()['settings'], {
      fingerprint_tokens: 'true',
      deduplicate_tokens: 'true',
      ...others,
    })
    assert.deepEqual(third.json()['settings'], second.json()['settings'])
    const read = await vault.call('GET', '/tenants/self', { key: vault.managementKey })
    assert.deepEqual(read.json(), third.json())
    assert.equal(read.json()['name'], 'z')
    const off = await put(vault, { name: 'z', settings: { fingerprint_tokens: 'false' } })
    assert.deepEqual(off.json()['settings'], {
      fingerprint_tokens: 'false',
      deduplicate_tokens: 'true',
      ...others,
    })
    const settings = {
      deduplicate_public: true,
      deduplicate_unreadable: 'false',
      public_body_bytes_max: 4096,
    }
    assert.deepEqual((await put(vault, { name: 'z', settings })).json()['settings'], {
      fingerprint_tokens: 'false',
      deduplicate_tokens: 'true',
      deduplicate_public: 'true',
      deduplicate_unreadable: 'false',
      public_body_bytes_max: '4096',
    })
  })

  test('settings hold from the next request on, for keys that were used a moment ago', async () => {
    const vault = await stillVault()
    const key = await vault.keyFor({ permissions: ['token:create', 'token:read'] })
    const make = async () =>
      (await vault.call('POST', '/tokens', { key, body: { data: 'same' } })).json()
    const plain = await make()
    assert.equal(plain['fingerprint'], undefined)
    const settings = { fingerprint_tokens: true, deduplicate_tokens: 'true' }
    await put(vault, { name: 'first', settings })
    const first = await make()
    const second = await make()
    assert.ok(first['fingerprint'])
    assert.equal(second['id'], first['id'])
    assert.notEqual(first['id'], plain['id'])
    await put(vault, { name: 'first', settings: { deduplicate_tokens: false } })
    assert.notEqual((await make())['id'], first['id'])
  })

  test('a name that another tenant has is accepted like any other, and proves nothing', async () => {
    const vault = await stillVault()
    const theirs = await vault.addTenant('theirs')
    const [taken, free] = [
      await put(vault, { name: 'theirs' }),
      await put(vault, { name: 'nobodys' }),
    ]
    assert.equal(taken.status, 200)
    assert.deepEqual({ ...taken.json(), name: 'nobodys' }, free.json())
    assert.equal((await put(vault, { name: 'theirs' })).status, 200)
    const other = await vault.call('GET', '/tenants/self', { key: theirs })
    assert.equal(other.json()['name'], 'theirs')
    assert.notEqual(other.json()['id'], vault.tenantId)
    assert.equal((await put(vault, { name: 'x'.repeat(200) })).status, 200)
    await assert.rejects(vault.addTenant('theirs'), /There is a tenant named "theirs" already/)
  })

  for (const store of ['sqlite', 'postgres'] as const) {
    test(`settings that are newer than a tenant have their defaults, on ${store}`, async (t) => {
      const vault = await stillVault({ store, oneServer: 'a data folder is looked into' })
      t.after(() => vault.close())
      const tenant = (await vault.world.store.tenants.find(vault.tenantId))!
      const older = { fingerprintTokens: true, deduplicateTokens: false } as TenantSettings
      const change = {
        kind: 'update',
        entity: 'tenant',
        row: { ...tenant, settings: older },
      } as const
      assert.equal(await vault.world.store.commit(vault.tenantId, [change]), null)
      const read = await vault.call('GET', '/tenants/self', { key: vault.managementKey })
      assert.deepEqual(read.json()['settings'], {
        fingerprint_tokens: 'true',
        deduplicate_tokens: 'false',
        deduplicate_public: 'false',
        deduplicate_unreadable: 'true',
        public_body_bytes_max: '262144',
      })
    })
  }

  const malformed: Record<string, JsonObject> = {
    'no name': {},
    'an empty name': { name: '' },
    'a name that is too long': { name: 'x'.repeat(201) },
    'a name of two lines': { name: 'a\nb' },
    'a setting that there is not': { name: 'x', settings: { secret_setting: 'true' } },
    'a setting that is neither': { name: 'x', settings: { fingerprint_tokens: 'yes' } },
    'a setting that is a number': { name: 'x', settings: { fingerprint_tokens: 1 } },
    'settings that are none': { name: 'x', settings: 'true' },
  }
  for (const [name, body] of Object.entries(malformed)) {
    test(`${name}: 400, and nothing changes`, async () => {
      const vault = await stillVault()
      const reply = await put(vault, body)
      assertRefused(reply, 400, 'body_invalid')
      assert.ok(!reply.text.includes('secret_setting'))
      const read = await vault.call('GET', '/tenants/self', { key: vault.managementKey })
      assert.equal(read.json()['modified_at'], undefined)
    })
  }
})

describe('DELETE /tenants/self', () => {
  test('every key is refused at once, and nothing of it opens any more', async () => {
    const vault = await stillVault({ oneServer: 'what is forgotten at once' })
    const theirs = await vault.addTenant('theirs')
    const rule = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }
    const key = await vault.keyFor({ permissions: ['token:create'], rules: [rule] })
    const made = await vault.call('POST', '/tokens', { key, body: CARD })
    const path = `/tokens/${made.json()['id'] as string}`
    assert.equal((await vault.call('GET', path, { key })).status, 200)

    const reply = await vault.call('DELETE', '/tenants/self', { key: vault.managementKey })
    assert.deepEqual([reply.status, reply.text], [204, ''])
    for (const it of [key, vault.managementKey]) {
      assertRefused(await vault.call('GET', '/permissions', { key: it }), 401, 'key_unknown')
      assertRefused(await vault.call('GET', path, { key: it }), 401, 'key_unknown')
    }
    await assert.rejects(async () => await vault.world.keyring.open(vault.tenantId), /has none/)
    assert.deepEqual(await vault.world.store.tenants.keys(vault.tenantId), [])
    assert.equal((await vault.call('GET', '/tenants/self', { key: theirs })).status, 200)
  })

  test('its rows are cleared, what comes in within the hour too, and no others', async () => {
    const vault = await stillVault()
    const { store, clock } = vault.world
    const theirs = await vault.addTenant('theirs')
    const key = await vault.keyFor({ permissions: ['token:create'] })
    const made = await vault.call('POST', '/tokens', { key, body: CARD })
    const id = made.json()['id'] as string
    const [token] = await store.tokens.find(vault.tenantId, [id])
    await vault.call('DELETE', '/tenants/self', { key: vault.managementKey })

    await clearDeletedTenants(vault.world)
    assert.deepEqual(await store.tokens.find(vault.tenantId, [id]), [])
    const late = { kind: 'insert-tokens', tokens: [token!] } as const
    assert.equal(await store.commit(vault.tenantId, [late]), null)
    await clearDeletedTenants(vault.world, () => false)
    assert.equal((await store.tokens.find(vault.tenantId, [id])).length, 1)
    clock.pass(TENANT_CLEARING_MS)
    await clearDeletedTenants(vault.world)
    assert.equal((await store.tenants.deleted()).length, 1)
    clock.pass(1)
    await clearDeletedTenants(vault.world)
    assert.deepEqual(await store.tokens.find(vault.tenantId, [id]), [])
    assert.deepEqual(await store.tenants.deleted(), [])
    assert.equal((await vault.call('GET', '/applications', { key: theirs })).status, 200)
  })

  test('a store that cannot say whether it was done: 503, and what is there still opens', async () => {
    let failing = false
    const vault = await stillVault({
      change: (world) => {
        const { store } = world
        return {
          ...world,
          store: withCommit(store, async (tenantId, changes) =>
            failing ? Promise.reject(new Error('away')) : await store.commit(tenantId, changes),
          ),
        }
      },
    })
    failing = true
    const reply = await vault.call('DELETE', '/tenants/self', { key: vault.managementKey })
    assertRefused(reply, 503, 'store_unavailable')
    failing = false
    const key = await vault.keyFor({ permissions: ['token:create', 'token:read'] })
    assert.equal((await vault.call('POST', '/tokens', { key, body: CARD })).status, 201)
  })
})

describe('GET /tenants/self/reports/usage', () => {
  const report = async (vault: StillVault): Promise<JsonObject> => {
    const key = vault.managementKey
    const reply = await vault.call('GET', '/tenants/self/reports/usage', { key })
    assert.equal(reply.status, 200, reply.text)
    return reply.json()['token_report'] as JsonObject
  }

  test('counts the tenant’s own tokens by type, and none that are expired', async () => {
    const vault = await stillVault()
    const theirs = await vault.addTenant('theirs')
    assert.deepEqual(await report(vault), {
      metrics_by_type: {},
      included_monthly_active_tokens: 0,
      monthly_active_tokens: 0,
      total_tokens: 0,
    })
    const key = await vault.keyFor({ permissions: ['token:create'] })
    const made = await vault.call('POST', '/tokenize', {
      key,
      body: [CARD, 'a', 'b', { type: 'token', data: 'c', expires_at: '2026-03-01T12:00:05Z' }],
    })
    assert.equal(made.status, 200)
    const at = '2026-03-01T12:00:00.000+00:00'
    const counted = (token: number, total: number) => ({
      metrics_by_type: {
        card: { count: 1, last_created_at: at },
        token: { count: token, last_created_at: at },
      },
      included_monthly_active_tokens: total,
      monthly_active_tokens: total,
      total_tokens: total,
    })
    assert.deepEqual(await report(vault), counted(3, 4))
    vault.world.clock.pass(5_000)
    assert.deepEqual(await report(vault), counted(2, 3))
    const other = await vault.call('GET', '/tenants/self/reports/usage', { key: theirs })
    assert.equal((other.json()['token_report'] as JsonObject)['total_tokens'], 0)
  })

  test('a token is active in the calendar month in which it was made', async () => {
    const vault = await stillVault()
    const key = await vault.keyFor({ permissions: ['token:create'] })
    await vault.call('POST', '/tokenize', { key, body: ['a', 'b'] })
    const active = async () => (await report(vault))['monthly_active_tokens']
    // The last millisecond of March 2026, and the first of April.
    vault.world.clock.pass(31 * DAY_MS - 12 * 60 * 60 * 1000 - 1)
    assert.equal(await active(), 2)
    vault.world.clock.pass(1)
    assert.equal(await active(), 0)
    await vault.call('POST', '/tokenize', { key, body: ['c'] })
    assert.equal(await active(), 1)
    assert.equal((await report(vault))['total_tokens'], 3)
  })
})
