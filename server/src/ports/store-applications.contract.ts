import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Change } from './change.ts'
import type { ApplicationFilter } from './store.ts'
import {
  NOW,
  OTHER,
  TENANT,
  application,
  everything,
  hash,
  key,
  opened,
  succeed,
  tenant,
  type Open,
  uuid,
} from './store-kit.contract.ts'

export function applicationContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: applications`, () => {
    test('an application comes back exactly as stored, and as updated', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [{ kind: 'insert', entity: 'application', row: application(1) }])
      assert.deepEqual(await store.applications.find(TENANT, uuid(1)), application(1))

      const updated = application(1, {
        name: 'é \u{1F511}',
        type: 'management',
        permissions: [],
        rules: [],
        destinations: null,
        allowedOrigins: null,
        expiresAt: NOW + 1,
        modifiedBy: uuid(9),
        modifiedAt: NOW,
      })
      await succeed(store, TENANT, [{ kind: 'update', entity: 'application', row: updated }])
      assert.deepEqual(await store.applications.find(TENANT, uuid(1)), updated)

      const nowhere = { ...updated, destinations: [], allowedOrigins: [] }
      await succeed(store, TENANT, [{ kind: 'update', entity: 'application', row: nowhere }])
      assert.deepEqual(await store.applications.find(TENANT, uuid(1)), nowhere)
    })

    test('what is another tenant’s is absent', async (t) => {
      const store = await opened(t, open)
      await succeed(store, OTHER, everything(1))
      assert.equal(await store.applications.find(TENANT, uuid(1)), null)
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [])
      assert.deepEqual(
        await store.applications.list(TENANT, { now: NOW }, { page: 1, size: 9 }),
        NONE,
      )
      for (const change of [
        { kind: 'update', entity: 'application', row: application(1) },
        { kind: 'delete', entity: 'application', id: uuid(1) },
        { kind: 'insert', entity: 'application_key', row: key(7, 1) },
        { kind: 'delete', entity: 'application_key', applicationId: uuid(1), id: uuid(1) },
      ] satisfies Change[]) {
        assert.deepEqual(await store.commit(TENANT, [change]), { kind: 'absent' }, change.kind)
      }
      assert.deepEqual(await store.applications.find(OTHER, uuid(1)), application(1))
      assert.deepEqual(await store.applications.keys(OTHER, uuid(1)), [key(1, 1)])
    })

    test('deleting an application takes its keys along, and no others', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, everything(1))
      await succeed(store, TENANT, [
        { kind: 'insert', entity: 'application', row: application(2) },
        { kind: 'insert', entity: 'application_key', row: key(2, 2) },
        { kind: 'delete', entity: 'application', id: uuid(1) },
      ])
      assert.equal(await store.applications.find(TENANT, uuid(1)), null)
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [])
      assert.equal(await store.applications.findByKeyHash(hash(uuid(1))), null)
      assert.deepEqual(await store.applications.keys(TENANT, uuid(2)), [key(2, 2)])
      const again: Change[] = [{ kind: 'delete', entity: 'application', id: uuid(1) }]
      assert.deepEqual(await store.commit(TENANT, again), { kind: 'absent' })
    })

    test('keys() are listed oldest first', async (t) => {
      const store = await opened(t, open)
      const keys = [3, 1, 2].map((n) => ({ ...key(n, 1), createdAt: NOW + n }))
      const sameTime = [6, 5, 4].map((n) => {
        return { ...key(n, 1), createdAt: NOW + 4, version: 10 - n }
      })
      await succeed(store, TENANT, [
        { kind: 'insert', entity: 'application', row: application(1) },
        ...[...keys, ...sameTime].map((key): Change => ({
          kind: 'insert',
          entity: 'application_key',
          row: key,
        })),
      ])
      const listed = await store.applications.keys(TENANT, uuid(1))
      assert.deepEqual(
        listed.map((it) => it.id),
        [uuid(1), uuid(2), uuid(3), uuid(6), uuid(5), uuid(4)],
      )
      assert.deepEqual(listed[0], keys[1])
    })

    test('a key is deleted only by the application it belongs to', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, everything(1))
      await succeed(store, TENANT, [{ kind: 'insert', entity: 'application', row: application(2) }])
      const change = {
        kind: 'delete',
        entity: 'application_key',
        applicationId: uuid(2),
        id: uuid(1),
      } as const
      assert.deepEqual(await store.commit(TENANT, [change]), { kind: 'absent' })
      await succeed(store, TENANT, [{ ...change, applicationId: uuid(1) }])
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [])
    })

    test('findByKeyHash() finds the holder in whatever tenant, as it is now', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      const holder = { tenant: tenant(2), application: application(2), keyId: uuid(2) }
      assert.deepEqual(await store.applications.findByKeyHash(hash(uuid(2))), holder)
      assert.equal(await store.applications.findByKeyHash(hash(uuid(3))), null)

      const renamed = application(2, { name: 'renamed' })
      await succeed(store, uuid(2), [{ kind: 'update', entity: 'application', row: renamed }])
      const found = await store.applications.findByKeyHash(hash(uuid(2)))
      assert.deepEqual(found, { ...holder, application: renamed })

      await succeed(store, uuid(2), [
        { kind: 'delete', entity: 'application_key', applicationId: uuid(2), id: uuid(2) },
      ])
      assert.equal(await store.applications.findByKeyHash(hash(uuid(2))), null)
    })

    test('list() is newest first, in pages, with the total of all that match', async (t) => {
      const store = await opened(t, open)
      const order = [4, 1, 5, 2, 3]
      await succeed(store, TENANT, order.map(insertApplication))
      const page = async (page: number, size: number) => {
        const { total, items } = await store.applications.list(TENANT, { now: NOW }, { page, size })
        return [total, ...items.map((it) => it.name)]
      }
      assert.deepEqual(await page(1, 2), [5, 'application 5', 'application 4'])
      assert.deepEqual(await page(2, 2), [5, 'application 3', 'application 2'])
      assert.deepEqual(await page(3, 2), [5, 'application 1'])
      assert.deepEqual(await page(4, 2), [5])
      const whole = await store.applications.list(TENANT, { now: NOW }, { page: 1, size: 100 })
      assert.deepEqual(whole.items[0], application(5, { createdAt: NOW + 5 }))
    })

    test('list() breaks ties of time by id', async (t) => {
      const store = await opened(t, open)
      const changes = [2, 3, 1].map((n): Change => {
        return { kind: 'insert', entity: 'application', row: application(n) }
      })
      await succeed(store, TENANT, changes)
      const { items } = await store.applications.list(TENANT, { now: NOW }, { page: 1, size: 9 })
      assert.deepEqual(
        items.map((it) => it.id),
        [uuid(3), uuid(2), uuid(1)],
      )
    })

    test('list() filters by ids and types where they are given', async (t) => {
      const store = await opened(t, open)
      const types = ['private', 'public', 'management', 'public'] as const
      await succeed(
        store,
        TENANT,
        types.map((type, n) => {
          return { kind: 'insert', entity: 'application', row: application(n, { type }) }
        }),
      )
      const listed = async (filter: ApplicationFilter) => {
        const page = await store.applications.list(
          TENANT,
          { ...filter, now: NOW },
          { page: 1, size: 9 },
        )
        assert.equal(page.total, page.items.length)
        return page.items.map((it) => it.id)
      }
      assert.deepEqual(await listed({ types: ['public'] }), [uuid(3), uuid(1)])
      const ids = [uuid(1), uuid(2), uuid(7), "x' or 1=1 --"]
      assert.deepEqual(await listed({ ids }), [uuid(2), uuid(1)])
      assert.deepEqual(await listed({ ids, types: ['management', 'private'] }), [uuid(2)])
      assert.deepEqual(await listed({ ids: [] }), [])
      assert.deepEqual(await listed({ types: [] }), [])
    })

    test('list() neither shows nor counts what is expired, from that instant on', async (t) => {
      const store = await opened(t, open)
      const ends = [null, NOW, NOW + 1, NOW + 2]
      const changes = ends.map((expiresAt, n): Change => {
        return { kind: 'insert', entity: 'application', row: application(n, { expiresAt }) }
      })
      await succeed(store, TENANT, changes)
      const listed = async (now: number, filter: ApplicationFilter = {}) => {
        const asked = { ...filter, now }
        const page = await store.applications.list(TENANT, asked, { page: 1, size: 9 })
        assert.equal(page.total, page.items.length)
        return page.items.map((it) => it.id)
      }
      assert.deepEqual(await listed(NOW - 1), [uuid(3), uuid(2), uuid(1), uuid(0)])
      assert.deepEqual(await listed(NOW), [uuid(3), uuid(2), uuid(0)])
      assert.deepEqual(await listed(NOW + 2), [uuid(0)])
      assert.deepEqual(await listed(NOW + 1, { ids: [uuid(2), uuid(3)] }), [uuid(3)])
      assert.deepEqual(await listed(NOW + 1, { types: ['private'] }), [uuid(3), uuid(0)])
    })
  })
}

const NONE = { total: 0, items: [] }

function insertApplication(n: number): Change {
  return { kind: 'insert', entity: 'application', row: application(n, { createdAt: NOW + n }) }
}
