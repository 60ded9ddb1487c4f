import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  bytes,
  everything,
  NOW,
  opened,
  OTHER,
  proxy,
  range,
  succeed,
  TENANT,
  tenant,
  uuid,
  type Open,
} from './store-kit.contract.ts'
import type { Change, ProxyFilter, StoredProxy } from './store.ts'

export function proxyContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: proxies`, () => {
    test('a proxy comes back exactly as stored, and as updated', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [put(proxy(1))])
      assert.deepEqual(await store.proxies.find(TENANT, uuid(1)), proxy(1))

      const own = { name: 'é \u{1F511}', terms: bytes(7), modifiedBy: uuid(9), modifiedAt: NOW + 1 }
      const updated = proxy(1, { ...own, revision: 1 })
      await succeed(store, TENANT, [{ kind: 'update-proxy', proxy: updated }])
      assert.deepEqual(await store.proxies.find(TENANT, uuid(1)), updated)
    })

    test('an update changes neither the key nor who made it when', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [put(proxy(1))])
      const sent = { ...proxy(2, { revision: 1 }), id: uuid(1), createdBy: uuid(7), createdAt: 7 }
      await succeed(store, TENANT, [{ kind: 'update-proxy', proxy: sent }])
      const { hash, createdBy, createdAt } = proxy(1)
      const expected = { ...sent, hash, createdBy, createdAt }
      assert.deepEqual(await store.proxies.find(TENANT, uuid(1)), expected)
    })

    test('an update of what was changed since, or is gone, changes nothing', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [put(proxy(1))])
      const [one, other] = ['one', 'other'].map((it) => proxy(1, { name: it, revision: 1 }))
      await succeed(store, TENANT, [{ kind: 'update-proxy', proxy: one! }])
      const changed = { kind: 'proxy-changed' }
      for (const late of [other!, proxy(1, { revision: 3 }), proxy(2, { revision: 1 })]) {
        const change = { kind: 'update-proxy', proxy: late } as const
        assert.deepEqual(await store.commit(TENANT, [change]), changed)
      }
      assert.deepEqual(await store.proxies.find(TENANT, uuid(1)), one)
    })

    test('of two updates at once of the same revision, exactly one is made', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [put(proxy(1))])
      const results = await Promise.all(
        range(0, 9).map((n) => {
          const it = proxy(1, { name: `update ${n}`, revision: 1 })
          return store.commit(TENANT, [{ kind: 'update-proxy', proxy: it }])
        }),
      )
      assert.equal(results.filter((it) => it === null).length, 1)
    })

    test('what is another tenant’s is absent', async (t) => {
      const store = await opened(t, open)
      await succeed(store, OTHER, everything(1))
      assert.equal(await store.proxies.find(TENANT, uuid(1)), null)
      for (const filter of [{}, { ids: [uuid(1)] }, { name: '*' }]) {
        const page = await store.proxies.list(TENANT, filter, { page: 1, size: 9 })
        assert.deepEqual(page, { total: 0, items: [] })
      }
      const update = { kind: 'update-proxy', proxy: proxy(1, { revision: 1 }) } as const
      const remove = { kind: 'delete-proxy', id: uuid(1) } as const
      assert.deepEqual(await store.commit(TENANT, [update]), { kind: 'proxy-changed' })
      assert.deepEqual(await store.commit(TENANT, [remove]), { kind: 'absent' })
      assert.deepEqual(await store.proxies.find(OTHER, uuid(1)), proxy(1))
    })

    test('a deleted proxy is gone, by id and by key, and cannot be deleted again', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(1), [put(proxy(2)), { kind: 'delete-proxy', id: uuid(1) }])
      assert.equal(await store.proxies.find(uuid(1), uuid(1)), null)
      assert.equal(await store.proxies.findByKeyHash(proxy(1).hash), null)
      assert.notEqual(await store.proxies.findByKeyHash(proxy(2).hash), null)
      const again = { kind: 'delete-proxy', id: uuid(1) } as const
      assert.deepEqual(await store.commit(uuid(1), [again]), { kind: 'absent' })
    })

    test('findByKeyHash() finds the proxy in whatever tenant, as it is now', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      const holder = { tenant: tenant(2), proxy: proxy(2) }
      assert.deepEqual(await store.proxies.findByKeyHash(proxy(2).hash), holder)
      assert.equal(await store.proxies.findByKeyHash(proxy(3).hash), null)
      const updated = proxy(2, { terms: bytes(7), revision: 1 })
      await succeed(store, uuid(2), [{ kind: 'update-proxy', proxy: updated }])
      const found = await store.proxies.findByKeyHash(proxy(2).hash)
      assert.deepEqual(found, { ...holder, proxy: updated })
    })

    test('no two proxies have the same key, in whatever tenants', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      const twin = { ...proxy(2), hash: proxy(1).hash }
      await assert.rejects(store.commit(uuid(2), [put(twin)]))
      assert.equal(await store.proxies.find(uuid(2), uuid(2)), null)
    })

    test('list() is newest first, ties broken by id, in pages, with the total of all', async (t) => {
      const store = await opened(t, open)
      const made = [4, 1, 5, 2, 3].map((n) => proxy(n, { createdAt: NOW + Math.floor(n / 2) }))
      await succeed(store, TENANT, made.map(put))
      for (const filter of [{}, { name: 'größe' }, { ids: range(1, 6).map(uuid) }]) {
        const page = async (page: number, size: number) => {
          const { total, items } = await store.proxies.list(TENANT, filter, { page, size })
          return [total, ...items.map((it) => it.id)]
        }
        assert.deepEqual(await page(1, 2), [5, uuid(5), uuid(4)])
        assert.deepEqual(await page(2, 2), [5, uuid(3), uuid(2)])
        assert.deepEqual(await page(3, 2), [5, uuid(1)])
        assert.deepEqual(await page(4, 2), [5])
        const { items } = await store.proxies.list(TENANT, filter, { page: 1, size: 1 })
        assert.deepEqual(items, [made[2]])
      }
    })

    test('list() filters by ids, and by a part of the name or a pattern, whatever the case', async (t) => {
      const store = await opened(t, open)
      const names = ['Payments', 'ÜBER payments', 'other', '100%']
      await succeed(
        store,
        TENANT,
        names.map((name, n) => put(proxy(n, { name }))),
      )
      const listed = async (filter: ProxyFilter) => {
        const page = await store.proxies.list(TENANT, filter, { page: 1, size: 9 })
        assert.equal(page.total, page.items.length)
        return page.items.map((it) => it.name)
      }
      assert.deepEqual(await listed({ name: 'PAY' }), ['ÜBER payments', 'Payments'])
      assert.deepEqual(await listed({ name: 'über*' }), ['ÜBER payments'])
      assert.deepEqual(await listed({ name: 'p*' }), ['Payments'])
      assert.deepEqual(await listed({ name: '%' }), ['100%'])
      assert.deepEqual(await listed({ name: '_' }), [])
      const ids = [uuid(0), uuid(2), uuid(7), "x' or 1=1 --"]
      assert.deepEqual(await listed({ ids }), ['other', 'Payments'])
      assert.deepEqual(await listed({ ids, name: 'PAY' }), ['Payments'])
      assert.deepEqual(await listed({ ids: [] }), [])
    })
  })
}

function put(proxy: StoredProxy): Change {
  return { kind: 'insert-proxy', proxy }
}
