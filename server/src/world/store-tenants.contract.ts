import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WrappedTenantKey } from './keyring.ts'
import type { Change } from './store.ts'
import {
  KEYS,
  TENANT,
  bytes,
  opened,
  succeed,
  tenant,
  type Open,
  uuid,
} from './store-kit.contract.ts'

export function tenantContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: tenants`, () => {
    test('rootKeyCheck() is null before, and exactly what was installed after', async (t) => {
      const store = await opened(t, open)
      assert.equal(await store.tenants.rootKeyCheck(), null)
      const rootKey = { id: 'root', check: bytes(40) }
      await succeed(store, TENANT, [{ kind: 'install', rootKey }])
      assert.deepEqual(await store.tenants.rootKeyCheck(), rootKey)
    })

    test('a tenant is found by id and by name, with every version of its keys', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [{ kind: 'insert-tenant', tenant: tenant(1), keys: KEYS }])
      assert.deepEqual(await store.tenants.find(uuid(1)), tenant(1))
      assert.deepEqual(await store.tenants.findByName('tenant 1'), tenant(1))
      assert.deepEqual(byVersion(await store.tenants.keys(uuid(1))), KEYS)
      assert.equal(await store.tenants.find(uuid(2)), null)
      assert.equal(await store.tenants.findByName('Tenant 1'), null)
      assert.deepEqual(await store.tenants.keys(uuid(2)), [])
    })

    test('names and ids are unique over all tenants; count() counts', async (t) => {
      const store = await opened(t, open)
      assert.equal(await store.tenants.count(), 0)
      await succeed(store, TENANT, [{ kind: 'insert-tenant', tenant: tenant(1), keys: KEYS }])
      const sameName = { ...tenant(2), name: 'tenant 1' }
      const sameId = { ...tenant(1), name: 'tenant 2' }
      for (const it of [sameName, sameId]) {
        const changes: Change[] = [{ kind: 'insert-tenant', tenant: it, keys: KEYS }]
        assert.deepEqual(await store.commit(it.id, changes), { kind: 'tenant-taken' })
      }
      await succeed(store, TENANT, [{ kind: 'insert-tenant', tenant: tenant(2), keys: [] }])
      assert.equal(await store.tenants.count(), 2)
    })
  })
}

function byVersion(keys: readonly WrappedTenantKey[]): WrappedTenantKey[] {
  return keys.toSorted((a, b) => (a.purpose + a.version < b.purpose + b.version ? -1 : 1))
}
