import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WrappedTenantKey } from './keyring.ts'
import type { Change } from './change.ts'
import type { StoredNotice, StoredTenant } from './stored.ts'
import {
  KEYS,
  NOW,
  TENANT,
  bytes,
  everything,
  hash,
  idsFound,
  insert,
  opened,
  proxy,
  range,
  succeed,
  tenant,
  token,
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
      assert.deepEqual(await store.tenants.named('tenant 1'), [tenant(1)])
      assert.deepEqual(byVersion(await store.tenants.keys(uuid(1))), KEYS)
      assert.equal(await store.tenants.find(uuid(2)), null)
      assert.deepEqual(await store.tenants.named('Tenant 1'), [])
      assert.deepEqual(await store.tenants.keys(uuid(2)), [])
    })

    test('notices are listed oldest first, replaced by id, removed, and unchanged by a failed commit', async (t) => {
      const store = await opened(t, open)
      assert.deepEqual(await store.tenants.notices(), [])
      const notice = (n: number, at: number, text = `{"n":${n}}`): StoredNotice => {
        return { id: uuid(n), text, at }
      }
      const put = ({ id, ...notice }: StoredNotice): Change => ({ kind: 'put-notice', id, notice })
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(1), [put(notice(2, NOW + 1)), put(notice(3, NOW))])
      assert.deepEqual(await store.tenants.notices(), [notice(3, NOW), notice(2, NOW + 1)])
      const text = '{"é":"\\u0000 \u{1F511}"}'
      await succeed(store, uuid(1), [put(notice(3, NOW + 2, text))])
      const both = [notice(2, NOW + 1), notice(3, NOW + 2, text)]
      assert.deepEqual(await store.tenants.notices(), both)
      const removed: Change = { kind: 'put-notice', id: uuid(2), notice: null }
      const refused: Change = { kind: 'require-root-key', id: 'another' }
      const changes = [put(notice(4, NOW)), removed, refused]
      assert.deepEqual(await store.commit(uuid(1), changes), { kind: 'keys-changed' })
      assert.deepEqual(await store.tenants.notices(), both)
      await succeed(store, uuid(1), [removed, { kind: 'put-notice', id: uuid(9), notice: null }])
      assert.deepEqual(await store.tenants.notices(), [notice(3, NOW + 2, text)])
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

    test('a tenant comes back as updated, but for what an update does not touch', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      const updated = {
        ...tenant(1),
        name: 'é \u{1F511}',
        settings: {
          fingerprintTokens: false,
          deduplicateTokens: true,
          deduplicatePublic: true,
          deduplicateUnreadable: false,
          publicBodyBytesMax: 4096,
          destinations: ['*.example.com:8443'],
        },
        modifiedBy: uuid(9),
        modifiedAt: NOW + 1,
      }
      const sent = { ...updated, plan: 'standard', createdBy: 'x', createdAt: 1 } as const
      await succeed(store, uuid(1), [{ kind: 'update', entity: 'tenant', row: sent }])
      assert.deepEqual(await store.tenants.find(uuid(1)), updated)
      const holder = await store.applications.findByKeyHash(hash(uuid(1)))
      assert.deepEqual(holder?.tenant, updated)
    })

    test('a tenant may be renamed to the name of another, which no new tenant may take', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      const renamed: StoredTenant = { ...tenant(1), name: 'tenant 2' }
      await succeed(store, uuid(1), [{ kind: 'update', entity: 'tenant', row: renamed }])
      assert.deepEqual(await store.tenants.find(uuid(1)), renamed)
      const named = await store.tenants.named('tenant 2')
      assert.deepEqual(
        named.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
        [renamed, tenant(2)],
      )
      const late: Change = {
        kind: 'insert-tenant',
        tenant: { ...tenant(3), name: 'tenant 2' },
        keys: KEYS,
      }
      assert.deepEqual(await store.commit(uuid(3), [late]), { kind: 'tenant-taken' })
      // The name that it had is free again.
      const next: Change = {
        kind: 'insert-tenant',
        tenant: { ...tenant(3), name: 'tenant 1' },
        keys: KEYS,
      }
      await succeed(store, uuid(3), [next])
      await succeed(store, uuid(3), [{ kind: 'delete-tenant', at: NOW }])
      const absent = { ...tenant(3), name: 'tenant 3' }
      const change: Change = { kind: 'update', entity: 'tenant', row: absent }
      assert.deepEqual(await store.commit(uuid(3), [change]), { kind: 'absent' })
    })

    test('deleting a tenant makes its API keys and its tenant keys unknown at once', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      await succeed(store, uuid(1), [{ kind: 'delete-tenant', at: NOW }])
      assert.equal(await store.tenants.find(uuid(1)), null)
      assert.deepEqual(await store.tenants.keys(uuid(1)), [])
      assert.equal(await store.applications.findByKeyHash(hash(uuid(1))), null)
      assert.equal(await store.proxies.findByKeyHash(proxy(1).hash), null)
      assert.equal(await store.tenants.count(), 1)
      const again: Change = { kind: 'delete-tenant', at: NOW }
      assert.deepEqual(await store.commit(uuid(1), [again]), { kind: 'absent' })
      assert.notEqual(await store.applications.findByKeyHash(hash(uuid(2))), null)
      assert.notEqual(await store.proxies.findByKeyHash(proxy(2).hash), null)
      // Its name is free again.
      const namesake = { ...tenant(3), name: 'tenant 1' }
      await succeed(store, uuid(3), [{ kind: 'insert-tenant', tenant: namesake, keys: [] }])
    })

    test('clearing removes all rows of a deleted tenant in chunks, and late ones until it is over', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      const many = range(1_000, 1_300).map((n) => token(n, { indexes: [hash(`i ${n}`)] }))
      await succeed(store, uuid(1), [insert(...many)])
      await succeed(store, uuid(1), [{ kind: 'delete-tenant', at: NOW }])
      const clear = (deletedBefore: number) =>
        succeed(store, uuid(1), [{ kind: 'clear-tenant', deletedBefore }])
      const left = async () => (await store.tenants.deleted()).map((it) => it.empty)

      assert.deepEqual(await left(), [false])
      const cleared = async () => {
        for (let n = 0; (await left())[0] === false; n++) {
          assert.ok(n < 100, 'it makes no progress')
          await clear(NOW)
        }
      }
      await cleared()
      assert.deepEqual(
        await store.tokens.find(
          uuid(1),
          many.map((it) => it.id),
        ),
        [],
      )
      assert.deepEqual(await store.tokens.usage(uuid(1), { now: NOW, since: NOW }), [])
      assert.equal(await store.applications.find(uuid(1), uuid(1)), null)
      assert.equal(await store.answers.find(uuid(1), 'answer 1', NOW), null)
      assert.equal(await store.proxies.find(uuid(1), uuid(1)), null)
      assert.equal(await store.rows('reactor').find(uuid(1), uuid(1)), null)

      await succeed(store, uuid(1), [insert(token(5))])
      assert.deepEqual(await left(), [false])
      await cleared()
      await clear(NOW)
      assert.deepEqual(await left(), [true])
      await clear(NOW + 1)
      assert.deepEqual(await left(), [])
    })

    test('clearing touches nothing of a tenant that is not deleted', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      await succeed(store, uuid(1), [{ kind: 'delete-tenant', at: NOW }])
      await succeed(store, uuid(2), [{ kind: 'clear-tenant', deletedBefore: NOW + 1 }])
      assert.deepEqual(await idsFound(store, uuid(2), [2]), [uuid(2)])
      assert.notEqual(await store.applications.findByKeyHash(hash(uuid(2))), null)
      assert.notEqual(await store.answers.find(uuid(2), 'answer 2', NOW), null)
    })
  })
}

function byVersion(keys: readonly WrappedTenantKey[]): WrappedTenantKey[] {
  return keys.toSorted((a, b) => (a.purpose + a.version < b.purpose + b.version ? -1 : 1))
}
