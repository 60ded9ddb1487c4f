import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  bytes,
  everything,
  opened,
  proxy,
  succeed,
  tenant,
  uuid,
  type Open,
} from './store-kit.contract.ts'

/** The contract for proxy keys; definitionContract() has what proxies and reactors share. */
export function proxyContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: keys of proxies`, () => {
    test('an update changes no key', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      const sent = { ...proxy(2, { revision: 1 }), id: uuid(1) }
      await succeed(store, uuid(1), [{ kind: 'update', entity: 'proxy', row: sent }])
      const { hash } = proxy(1)
      assert.deepEqual((await store.proxies.findByKeyHash(hash))?.proxy, { ...sent, hash })
      assert.equal(await store.proxies.findByKeyHash(sent.hash), null)
    })

    test('a deleted proxy is not found by its key', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(1), [
        { kind: 'insert', entity: 'proxy', row: proxy(2) },
        { kind: 'delete', entity: 'proxy', id: uuid(1) },
      ])
      assert.equal(await store.proxies.findByKeyHash(proxy(1).hash), null)
      assert.notEqual(await store.proxies.findByKeyHash(proxy(2).hash), null)
    })

    test('findByKeyHash() finds the proxy in whatever tenant, as it is now', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      const holder = { tenant: tenant(2), proxy: proxy(2) }
      assert.deepEqual(await store.proxies.findByKeyHash(proxy(2).hash), holder)
      assert.equal(await store.proxies.findByKeyHash(proxy(3).hash), null)
      const updated = proxy(2, { terms: bytes(7), revision: 1 })
      await succeed(store, uuid(2), [{ kind: 'update', entity: 'proxy', row: updated }])
      const found = await store.proxies.findByKeyHash(proxy(2).hash)
      assert.deepEqual(found, { ...holder, proxy: updated })
    })

    test('no two proxies have the same key, in whatever tenants', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      const sameHash = { ...proxy(2), hash: proxy(1).hash }
      await assert.rejects(
        store.commit(uuid(2), [{ kind: 'insert', entity: 'proxy', row: sameHash }]),
      )
      assert.equal(await store.proxies.find(uuid(2), uuid(2)), null)
    })
  })
}
