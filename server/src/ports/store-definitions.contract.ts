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
  reactor,
  succeed,
  TENANT,
  uuid,
  type Open,
} from './store-kit.contract.ts'
import type { Change, Conflict } from './change.ts'
import type { DefinitionFilter, EntityReader, Store } from './store.ts'
import type { StoredDefinition, StoredProxy } from './stored.ts'

/** One kind of named definition. */
interface DefinitionKind {
  readonly name: string
  readonly make: (n: number, own?: Partial<StoredDefinition>) => StoredDefinition
  readonly reader: (store: Store) => EntityReader<StoredDefinition>
  readonly insert: (it: StoredDefinition) => Change
  readonly update: (it: StoredDefinition) => Change
  readonly remove: (id: string) => Change
  readonly changed: Conflict
}

const PROXIES: DefinitionKind = {
  name: 'proxies',
  make: proxy,
  reader: (store) => store.proxies,
  insert: (it) => ({ kind: 'insert', entity: 'proxy', row: it as StoredProxy }),
  update: (it) => ({ kind: 'update', entity: 'proxy', row: it as StoredProxy }),
  remove: (id) => ({ kind: 'delete', entity: 'proxy', id }),
  changed: { kind: 'proxy-changed' },
}

const REACTORS: DefinitionKind = {
  name: 'reactors',
  make: reactor,
  reader: (store) => store.rows('reactor'),
  insert: (it) => ({ kind: 'insert', entity: 'reactor', row: it }),
  update: (it) => ({ kind: 'update', entity: 'reactor', row: it }),
  remove: (id) => ({ kind: 'delete', entity: 'reactor', id }),
  changed: { kind: 'reactor-changed' },
}

export function definitionContract(name: string, open: Open): void {
  for (const kind of [PROXIES, REACTORS]) contractOf(name, open, kind)
}

function contractOf(name: string, open: Open, kind: DefinitionKind): void {
  const { make, reader, insert, update, remove, changed: conflict } = kind

  describe(`Store contract: ${name}: ${kind.name}`, () => {
    test('one comes back exactly as stored, and as updated', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(make(1))])
      assert.deepEqual(await reader(store).find(TENANT, uuid(1)), make(1))

      const own = { name: 'é \u{1F511}', terms: bytes(7), modifiedBy: uuid(9), modifiedAt: NOW + 1 }
      const updated = make(1, { ...own, revision: 1 })
      await succeed(store, TENANT, [update(updated)])
      assert.deepEqual(await reader(store).find(TENANT, uuid(1)), updated)
    })

    test('an update changes not who made it when', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(make(1))])
      const sent = { ...make(2, { revision: 1 }), id: uuid(1), createdBy: uuid(7), createdAt: 7 }
      await succeed(store, TENANT, [update(sent)])
      const { createdBy, createdAt } = make(1)
      const { hash: _, ...found } = { hash: 0, ...(await reader(store).find(TENANT, uuid(1)))! }
      const { hash: __, ...expected } = { hash: 0, ...sent, createdBy, createdAt }
      assert.deepEqual(found, expected)
    })

    test('an update of what was changed since, or is gone, changes nothing', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(make(1))])
      const [one, other] = ['one', 'other'].map((it) => make(1, { name: it, revision: 1 }))
      await succeed(store, TENANT, [update(one!)])
      for (const late of [other!, make(1, { revision: 3 }), make(2, { revision: 1 })]) {
        assert.deepEqual(await store.commit(TENANT, [update(late)]), conflict)
      }
      assert.deepEqual(await reader(store).find(TENANT, uuid(1)), one)
    })

    test('of two updates at once of the same revision, exactly one is made', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(make(1))])
      const results = await Promise.all(
        range(0, 9).map((n) => {
          const it = make(1, { name: `update ${n}`, revision: 1 })
          return store.commit(TENANT, [update(it)])
        }),
      )
      assert.equal(results.filter((it) => it === null).length, 1)
    })

    test('what is another tenant’s is absent', async (t) => {
      const store = await opened(t, open)
      await succeed(store, OTHER, everything(1))
      assert.equal(await reader(store).find(TENANT, uuid(1)), null)
      for (const filter of [{}, { ids: [uuid(1)] }, { name: '*' }]) {
        const page = await reader(store).list(TENANT, filter, { page: 1, size: 9 })
        assert.deepEqual(page, { total: 0, items: [] })
      }
      const next = update(make(1, { revision: 1 }))
      assert.deepEqual(await store.commit(TENANT, [next]), conflict)
      assert.deepEqual(await store.commit(TENANT, [remove(uuid(1))]), { kind: 'absent' })
      assert.deepEqual(await reader(store).find(OTHER, uuid(1)), make(1))
    })

    test('a deleted one is gone, and cannot be deleted again', async (t) => {
      const store = await opened(t, open)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(1), [insert(make(2)), remove(uuid(1))])
      assert.equal(await reader(store).find(uuid(1), uuid(1)), null)
      assert.notEqual(await reader(store).find(uuid(1), uuid(2)), null)
      assert.deepEqual(await store.commit(uuid(1), [remove(uuid(1))]), { kind: 'absent' })
    })

    test('list() is newest first, ties broken by id, in pages, with the total of all', async (t) => {
      const store = await opened(t, open)
      const made = [4, 1, 5, 2, 3].map((n) => make(n, { createdAt: NOW + Math.floor(n / 2) }))
      await succeed(store, TENANT, made.map(insert))
      for (const filter of [{}, { name: 'größe' }, { ids: range(1, 6).map(uuid) }]) {
        const page = async (page: number, size: number) => {
          const { total, items } = await reader(store).list(TENANT, filter, { page, size })
          return [total, ...items.map((it) => it.id)]
        }
        assert.deepEqual(await page(1, 2), [5, uuid(5), uuid(4)])
        assert.deepEqual(await page(2, 2), [5, uuid(3), uuid(2)])
        assert.deepEqual(await page(3, 2), [5, uuid(1)])
        assert.deepEqual(await page(4, 2), [5])
        const { items } = await reader(store).list(TENANT, filter, { page: 1, size: 1 })
        assert.deepEqual(items, [made[2]])
      }
    })

    test('list() filters by ids, and by a part of the name or a pattern, whatever the case', async (t) => {
      const store = await opened(t, open)
      const names = ['Payments', 'ÜBER payments', 'other', '100%']
      await succeed(
        store,
        TENANT,
        names.map((name, n) => insert(make(n, { name }))),
      )
      const listed = async (filter: DefinitionFilter) => {
        const page = await reader(store).list(TENANT, filter, { page: 1, size: 9 })
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
