import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { IDEMPOTENCY_LIFETIME_MS } from '../base/limits.ts'
import type { JsonObject } from '../base/json.ts'
import type { WrappedTenantKey } from './keyring.ts'
import type {
  Change,
  Conflict,
  Store,
  StoredAnswer,
  StoredApplication,
  StoredApplicationKey,
  StoredTenant,
  StoredToken,
} from './store.ts'

/** What every Store promises. `open` returns a store with nothing in it; the suite closes it. */
export function storeContract(name: string, open: () => Promise<Store>): void {
  async function opened(t: TestContext): Promise<Store> {
    const store = await open()
    t.after(() => store.close())
    return store
  }

  describe(`Store contract: ${name}: commit()`, () => {
    for (const [kind, conflicting] of Object.entries(CONFLICTING)) {
      test(`changes nothing when its last change meets ${kind}`, async (t) => {
        const store = await opened(t)
        await succeed(store, TENANT, everything(1))
        assert.equal((await store.commit(TENANT, [...fresh(), conflicting]))?.kind, kind)

        assert.equal(await store.applications.find(TENANT, FRESH), null)
        assert.equal(await store.applications.findByKeyHash(hash(FRESH)), null)
        assert.deepEqual(await store.tokens.find(TENANT, [FRESH]), [])
        assert.equal(await store.tokens.findByFingerprint(TENANT, 'card', FRESH, NOW), null)
        assert.equal(await store.answers.find(TENANT, FRESH, NOW), null)
        assert.deepEqual(await store.applications.find(TENANT, uuid(1)), application(1))
        assert.equal(await store.tenants.count(), 1)
        // And what it would have made can still be made.
        await succeed(store, TENANT, fresh())
      })
    }

    test('changes nothing when its first change meets a conflict', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [insert(token(1))])
      const changes = [insert(token(1)), insert(token(2))]
      assert.deepEqual(await store.commit(TENANT, changes), taken(uuid(1)))
      assert.deepEqual(await store.tokens.find(TENANT, [uuid(2)]), [])
    })

    test('makes its changes in order', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [
        { kind: 'insert-application', application: application(1) },
        { kind: 'insert-application-key', key: key(1, 1) },
        { kind: 'update-application', application: application(1, { name: 'renamed' }) },
        { kind: 'delete-application-key', applicationId: uuid(1), id: uuid(1) },
        { kind: 'insert-application-key', key: key(2, 1) },
      ])
      assert.equal((await store.applications.find(TENANT, uuid(1)))?.name, 'renamed')
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [key(2, 1)])
    })

    test('does nothing, gladly, when there is nothing to do', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [])
      await succeed(store, TENANT, [insert()])
    })

    test('answers each of many commits in flight by itself', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [insert(token(3), token(14))])
      const outcomes = await Promise.all(
        Array.from({ length: 200 }, (_, n) =>
          store.commit(TENANT, [insert(token(n)), insert(token(n + 1000))]),
        ),
      )
      const refused = outcomes.flatMap((it, n) => (it === null ? [] : [n]))
      assert.deepEqual(refused, [3, 14])
      assert.deepEqual(await idsFound(store, TENANT, [1003, 1014]), [])
      assert.equal((await idsFound(store, TENANT, range(1000, 1200))).length, 198)
    })

    test('rejects after close()', async () => {
      const store = await open()
      await store.close()
      await assert.rejects(store.commit(TENANT, [insert(token(1))]))
      await assert.rejects(store.check())
    })

    test('is waited for by close()', async () => {
      const store = await open()
      const commit = store.commit(TENANT, [insert(...range(0, 600).map((n) => token(n)))])
      await store.close()
      assert.equal(await commit, null)
    })
  })

  describe(`Store contract: ${name}: tenants`, () => {
    test('rootKeyCheck() is null before, and exactly what was installed after', async (t) => {
      const store = await opened(t)
      assert.equal(await store.tenants.rootKeyCheck(), null)
      const rootKey = { id: 'root', check: bytes(40) }
      await succeed(store, TENANT, [{ kind: 'install', rootKey }])
      assert.deepEqual(await store.tenants.rootKeyCheck(), rootKey)
    })

    test('a tenant is found by id and by name, with every version of its keys', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [{ kind: 'insert-tenant', tenant: tenant(1), keys: KEYS }])
      assert.deepEqual(await store.tenants.find(uuid(1)), tenant(1))
      assert.deepEqual(await store.tenants.findByName('tenant 1'), tenant(1))
      assert.deepEqual(byVersion(await store.tenants.keys(uuid(1))), KEYS)
      assert.equal(await store.tenants.find(uuid(2)), null)
      assert.equal(await store.tenants.findByName('Tenant 1'), null)
      assert.deepEqual(await store.tenants.keys(uuid(2)), [])
    })

    test('names and ids are unique over all tenants; count() counts', async (t) => {
      const store = await opened(t)
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

  describe(`Store contract: ${name}: applications`, () => {
    test('an application comes back exactly as stored, and as updated', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [{ kind: 'insert-application', application: application(1) }])
      assert.deepEqual(await store.applications.find(TENANT, uuid(1)), application(1))

      const updated = application(1, {
        name: 'é \u{1F511}',
        type: 'management',
        permissions: [],
        rules: [],
        expiresAt: NOW + 1,
        modifiedBy: uuid(9),
        modifiedAt: NOW,
      })
      await succeed(store, TENANT, [{ kind: 'update-application', application: updated }])
      assert.deepEqual(await store.applications.find(TENANT, uuid(1)), updated)
    })

    test('what is another tenant’s is absent', async (t) => {
      const store = await opened(t)
      await succeed(store, OTHER, everything(1))
      assert.equal(await store.applications.find(TENANT, uuid(1)), null)
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [])
      assert.deepEqual(await store.applications.list(TENANT, {}, { page: 1, size: 9 }), NONE)
      for (const change of [
        { kind: 'update-application', application: application(1) },
        { kind: 'delete-application', id: uuid(1) },
        { kind: 'insert-application-key', key: key(7, 1) },
        { kind: 'delete-application-key', applicationId: uuid(1), id: uuid(1) },
      ] satisfies Change[]) {
        assert.deepEqual(await store.commit(TENANT, [change]), { kind: 'absent' }, change.kind)
      }
      assert.deepEqual(await store.applications.find(OTHER, uuid(1)), application(1))
      assert.deepEqual(await store.applications.keys(OTHER, uuid(1)), [key(1, 1)])
    })

    test('deleting an application takes its keys along, and no others', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, everything(1))
      await succeed(store, TENANT, [
        { kind: 'insert-application', application: application(2) },
        { kind: 'insert-application-key', key: key(2, 2) },
        { kind: 'delete-application', id: uuid(1) },
      ])
      assert.equal(await store.applications.find(TENANT, uuid(1)), null)
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [])
      assert.equal(await store.applications.findByKeyHash(hash(uuid(1))), null)
      assert.deepEqual(await store.applications.keys(TENANT, uuid(2)), [key(2, 2)])
      const again: Change[] = [{ kind: 'delete-application', id: uuid(1) }]
      assert.deepEqual(await store.commit(TENANT, again), { kind: 'absent' })
    })

    test('keys() are listed oldest first', async (t) => {
      const store = await opened(t)
      const keys = [3, 1, 2].map((n) => ({ ...key(n, 1), createdAt: NOW + n }))
      await succeed(store, TENANT, [
        { kind: 'insert-application', application: application(1) },
        ...keys.map((key): Change => ({ kind: 'insert-application-key', key })),
      ])
      const listed = await store.applications.keys(TENANT, uuid(1))
      assert.deepEqual(
        listed.map((it) => it.id),
        [uuid(1), uuid(2), uuid(3)],
      )
      assert.deepEqual(listed[0], keys[1])
    })

    test('a key is deleted only by the application it belongs to', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, everything(1))
      await succeed(store, TENANT, [{ kind: 'insert-application', application: application(2) }])
      const change = {
        kind: 'delete-application-key',
        applicationId: uuid(2),
        id: uuid(1),
      } as const
      assert.deepEqual(await store.commit(TENANT, [change]), { kind: 'absent' })
      await succeed(store, TENANT, [{ ...change, applicationId: uuid(1) }])
      assert.deepEqual(await store.applications.keys(TENANT, uuid(1)), [])
    })

    test('findByKeyHash() finds the holder in whatever tenant, as it is now', async (t) => {
      const store = await opened(t)
      await succeed(store, uuid(1), everything(1))
      await succeed(store, uuid(2), everything(2).slice(1))
      const holder = { tenant: tenant(2), application: application(2), keyId: uuid(2) }
      assert.deepEqual(await store.applications.findByKeyHash(hash(uuid(2))), holder)
      assert.equal(await store.applications.findByKeyHash(hash(uuid(3))), null)

      const renamed = application(2, { name: 'renamed' })
      await succeed(store, uuid(2), [{ kind: 'update-application', application: renamed }])
      const found = await store.applications.findByKeyHash(hash(uuid(2)))
      assert.deepEqual(found, { ...holder, application: renamed })

      await succeed(store, uuid(2), [
        { kind: 'delete-application-key', applicationId: uuid(2), id: uuid(2) },
      ])
      assert.equal(await store.applications.findByKeyHash(hash(uuid(2))), null)
    })

    test('list() is newest first, in pages, with the total of all that match', async (t) => {
      const store = await opened(t)
      const order = [4, 1, 5, 2, 3]
      await succeed(store, TENANT, order.map(insertApplication))
      const page = async (page: number, size: number) => {
        const { total, items } = await store.applications.list(TENANT, {}, { page, size })
        return [total, ...items.map((it) => it.name)]
      }
      assert.deepEqual(await page(1, 2), [5, 'application 5', 'application 4'])
      assert.deepEqual(await page(2, 2), [5, 'application 3', 'application 2'])
      assert.deepEqual(await page(3, 2), [5, 'application 1'])
      assert.deepEqual(await page(4, 2), [5])
      const whole = await store.applications.list(TENANT, {}, { page: 1, size: 100 })
      assert.deepEqual(whole.items[0], application(5, { createdAt: NOW + 5 }))
    })

    test('list() breaks ties of time by id', async (t) => {
      const store = await opened(t)
      const changes = [2, 3, 1].map((n): Change => {
        return { kind: 'insert-application', application: application(n) }
      })
      await succeed(store, TENANT, changes)
      const { items } = await store.applications.list(TENANT, {}, { page: 1, size: 9 })
      assert.deepEqual(
        items.map((it) => it.id),
        [uuid(3), uuid(2), uuid(1)],
      )
    })

    test('list() filters by ids and types where they are given', async (t) => {
      const store = await opened(t)
      const types = ['private', 'public', 'management', 'public'] as const
      await succeed(
        store,
        TENANT,
        types.map((type, n) => {
          return { kind: 'insert-application', application: application(n, { type }) }
        }),
      )
      const listed = async (filter: Parameters<Store['applications']['list']>[1]) => {
        const page = await store.applications.list(TENANT, filter, { page: 1, size: 9 })
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
  })

  describe(`Store contract: ${name}: tokens`, () => {
    test('find() returns exactly what was stored, byte for byte', async (t) => {
      const store = await opened(t)
      let runs = 0
      const tokens = fc.array(anyToken, { minLength: 1, maxLength: 5 })
      const property = fc.asyncProperty(tokens, async (drawn) => {
        const tenantId = uuid(++runs)
        const made = drawn.map((it, n) => ({
          ...it,
          id: it.id === null ? uuid(n) : `${n}${it.id}`,
          serial: uuid(n),
        }))
        await succeed(store, tenantId, [insert(...made)])
        const found = await store.tokens.find(
          tenantId,
          made.map((it) => it.id),
        )
        assert.deepEqual(bySerial(found), made)
      })
      await fc.assert(property, { numRuns: 200 })
    })

    test('find() returns each once, expired ones included, unknown ones left out', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [insert(token(1), token(2, { expiresAt: NOW - 1 }))])
      const asked = [uuid(2), uuid(1), uuid(1), uuid(9), 'no such', "x' or 1=1 --", '']
      const found = await store.tokens.find(TENANT, asked)
      assert.deepEqual(bySerial(found), [token(1), token(2, { expiresAt: NOW - 1 })])
      assert.deepEqual(await store.tokens.find(TENANT, []), [])
    })

    test('find() knows a token by its id, never by a serial that differs', async (t) => {
      const store = await opened(t)
      const named = token(1, { id: '384-28-3948' })
      const uuidNamed = token(2, { id: uuid(20) })
      await succeed(store, TENANT, [insert(named, uuidNamed)])
      assert.deepEqual(await store.tokens.find(TENANT, [uuid(1), uuid(2)]), [])
      const found = await store.tokens.find(TENANT, ['384-28-3948', uuid(20)])
      assert.deepEqual(bySerial(found), [named, uuidNamed])
    })

    test('whatever one tenant stores, another’s look-ups return nothing of it', async (t) => {
      const store = await opened(t)
      let runs = 0
      const ids = fc.uniqueArray(fc.oneof(fc.uuid(), fc.string({ minLength: 1 })), {
        minLength: 1,
      })
      const property = fc.asyncProperty(ids, fc.array(fc.uuid()), async (theirs, asked) => {
        const them = uuid(++runs)
        const tokens = theirs.map((id, n) => token(n, { id, fingerprint: id }))
        await succeed(store, them, [insert(...tokens)])
        assert.deepEqual(await store.tokens.find(OTHER, [...theirs, ...asked]), [])
        for (const id of theirs) {
          assert.equal(await store.tokens.findByFingerprint(OTHER, 'card', id, NOW), null)
        }
        assert.equal((await store.tokens.find(them, theirs)).length, theirs.length)
      })
      await fc.assert(property, { numRuns: 50 })
    })

    test('an id or serial is taken once in a tenant, whichever came first', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [
        insert(token(1), token(2, { id: 'named' }), token(3, { id: uuid(30) })),
      ])
      for (const it of [
        token(1),
        token(4, { id: 'named' }),
        token(4, { id: uuid(1) }),
        token(4, { id: uuid(2) }),
        token(4, { id: uuid(30) }),
        token(30),
        token(3),
        token(2, { id: 'else' }),
        token(30, { id: 'else' }),
      ]) {
        assert.deepEqual(await store.commit(TENANT, [insert(it)]), taken(it.id))
      }
      await succeed(store, OTHER, [insert(token(1), token(2, { id: 'named' }))])
      await succeed(store, TENANT, [insert(token(4, { id: 'Named' }))])
    })

    test('an id is taken within one commit too', async (t) => {
      const store = await opened(t)
      for (const [first, second] of [
        [token(1), token(1)],
        [token(1, { id: 'same' }), token(2, { id: 'same' })],
        [token(1), token(2, { id: uuid(1) })],
        [token(1, { id: uuid(2) }), token(2)],
      ] as const) {
        const together = await store.commit(TENANT, [insert(first, second)])
        assert.deepEqual(together, taken(second.id))
        const apart = await store.commit(TENANT, [insert(first), insert(second)])
        assert.deepEqual(apart, taken(second.id))
      }
      assert.deepEqual(await idsFound(store, TENANT, [1, 2]), [])
    })

    test('an id is taken once by commits in flight too', async (t) => {
      const store = await opened(t)
      for (const [first, second] of [
        [token(1), token(1)],
        [token(2), token(3, { id: uuid(2) })],
        [token(4, { id: uuid(5) }), token(5)],
        [token(6, { id: 'same' }), token(7, { id: 'same' })],
      ] as const) {
        const outcomes = await Promise.all([
          store.commit(TENANT, [insert(first)]),
          store.commit(TENANT, [insert(second)]),
        ])
        assert.equal(outcomes.filter((it) => it === null).length, 1, second.id)
      }
    })

    test('deduplication meets a twin that was there, or comes in the same commit', async (t) => {
      const store = await opened(t)
      const twins = { kind: 'fingerprint-taken', type: 'card', fingerprint: 'f' } as const
      const twin = token(2, { fingerprint: 'f', deduplicate: true })
      const together = await store.commit(TENANT, [insert(token(1, { fingerprint: 'f' }), twin)])
      assert.deepEqual(together, twins)
      await succeed(store, TENANT, [insert(token(1, { fingerprint: 'f' }))])
      assert.deepEqual(await store.commit(TENANT, [insert(twin)]), twins)
      // Only who asks for it is held to it.
      await succeed(store, TENANT, [insert({ ...twin, deduplicate: false })])
      // Other types, fingerprints, tenants are not twins; nothing is no fingerprint.
      await succeed(store, TENANT, [
        insert(
          { ...twin, ...named(3), type: 'bank' },
          { ...twin, ...named(4), fingerprint: 'F' },
          { ...twin, ...named(5), fingerprint: null },
          { ...twin, ...named(6), fingerprint: null },
        ),
      ])
      await succeed(store, OTHER, [insert(twin)])
    })

    test('an expired token is nobody’s twin; expiring later, it is', async (t) => {
      const store = await opened(t)
      for (const [n, expiresAt] of [NOW - 1, NOW, NOW + 1].entries()) {
        const [first, second] = [token(2 * n), token(2 * n + 1)]
        const fingerprint = `f${n}`
        await succeed(store, TENANT, [insert({ ...first, fingerprint, expiresAt })])
        const twin = { ...second, fingerprint, deduplicate: true }
        const conflict = await store.commit(TENANT, [insert(twin)])
        assert.equal(conflict === null, expiresAt <= NOW, String(expiresAt - NOW))
      }
    })

    test('of deduplicated twins in flight exactly one is stored', async (t) => {
      const store = await opened(t)
      const outcomes = await Promise.all(
        range(0, 50).map((n) =>
          store.commit(TENANT, [insert(token(n, { fingerprint: 'f', deduplicate: true }))]),
        ),
      )
      assert.equal(outcomes.filter((it) => it === null).length, 1)
      assert.equal((await idsFound(store, TENANT, range(0, 50))).length, 1)
    })

    test('findByFingerprint() returns the oldest that is not expired, or null', async (t) => {
      const store = await opened(t)
      const f = { fingerprint: 'f' }
      await succeed(store, TENANT, [
        insert(
          token(3, { ...f, expiresAt: NOW + 10 }),
          token(1, { ...f, expiresAt: NOW }),
          token(4, f),
          token(2, { ...f, type: 'bank' }),
        ),
      ])
      const found = async (now: number, type = 'card') =>
        (await store.tokens.findByFingerprint(TENANT, type, 'f', now))?.id
      assert.equal(await found(NOW - 1), uuid(1))
      assert.equal(await found(NOW), uuid(3))
      assert.equal(await found(NOW + 10), uuid(4))
      assert.equal(await found(NOW, 'bank'), uuid(2))
      assert.equal(await found(NOW, 'token'), undefined)
      assert.equal(await store.tokens.findByFingerprint(TENANT, 'card', 'g', NOW), null)
    })

    test('commits of any tokens agree with a model of ten lines', async (t) => {
      const store = await opened(t)
      let runs = 0
      const property = fc.asyncProperty(fc.array(fc.array(smallToken)), async (commits) => {
        const tenantId = uuid(++runs)
        let model: StoredToken[] = []
        for (const tokens of commits) {
          const next = [...model]
          const expected = tokens.map((it) => modelInsert(next, it)).find((it) => it !== null)
          assert.deepEqual(await store.commit(tenantId, [insert(...tokens)]), expected ?? null)
          if (expected === undefined) model = next
        }
        const found = await store.tokens.find(tenantId, [...NAMES, ...range(0, 9).map(uuid)])
        assert.deepEqual(bySerial(found), bySerial(model))
      })
      await fc.assert(property, { numRuns: 100 })
    })
  })

  describe(`Store contract: ${name}: long lists of tokens`, () => {
    test('10,000 tokens become visible together, and not before', async (t) => {
      const store = await opened(t)
      const tokens = [token(0, { fingerprint: 'f' }), ...range(1, LONG).map((n) => token(n))]
      const progress = { done: false }
      const commit = store.commit(TENANT, [insert(...tokens)]).then((it) => {
        progress.done = true
        return it
      })
      const asked = [0, 1, 255, 256, 257, 5000, LONG - 1]
      const seen = new Set<number>()
      for (let n = 0; !progress.done; n++) {
        seen.add((await idsFound(store, TENANT, asked)).length)
        const twin = await store.tokens.findByFingerprint(TENANT, 'card', 'f', NOW)
        seen.add(twin === null ? 0 : asked.length)
        await succeed(store, OTHER, [insert(token(n))])
      }
      assert.equal(await commit, null)
      assert.deepEqual(
        [...seen].filter((it) => it !== 0 && it !== asked.length),
        [],
      )
      const found = await store.tokens.find(
        TENANT,
        tokens.map((it) => it.id),
      )
      assert.deepEqual(bySerial(found), tokens)
    })

    for (const [what, spoil] of Object.entries(SPOILED)) {
      test(`none of 2,000 is stored when ${what}`, async (t) => {
        const store = await opened(t)
        await succeed(store, TENANT, [insert(token(-1, { fingerprint: 'twin' })), answer(1)])
        const tokens = range(0, 2000).map((n) => token(n, { indexes: [bytes(32)] }))
        const { changes, conflict } = spoil(tokens)
        assert.deepEqual(await store.commit(TENANT, changes), conflict)
        assert.deepEqual(await idsFound(store, TENANT, range(0, 2000)), [])
        assert.equal(await store.tokens.findByFingerprint(TENANT, 'card', 'own', NOW), null)
        assert.equal(await store.answers.find(TENANT, 'answer 2', NOW), null)
        // Their ids are free again.
        await succeed(store, TENANT, [insert(...tokens), answer(2)])
        assert.equal((await idsFound(store, TENANT, range(0, 2000))).length, 2000)
      })
    }

    test('they share a commit with what belongs to them', async (t) => {
      const store = await opened(t)
      const [some, more] = [range(0, 300), range(300, 700)]
      await succeed(store, TENANT, [
        insert(...some.map((n) => token(n))),
        answer(1),
        insert(...more.map((n) => token(n))),
      ])
      assert.equal((await idsFound(store, TENANT, range(0, 700))).length, 700)
      assert.notEqual(await store.answers.find(TENANT, 'answer 1', NOW), null)
    })

    test('of two in flight that want the same id exactly one is stored', async (t) => {
      const store = await opened(t)
      const lists = [range(0, 1000), range(1000, 2000)].map((numbers) => [
        ...numbers.map((n) => token(n)),
        token(numbers[0]! + 5000, { id: 'same' }),
      ])
      const outcomes = await Promise.all(lists.map((it) => store.commit(TENANT, [insert(...it)])))
      assert.deepEqual(
        outcomes.filter((it) => it !== null),
        [taken('same')],
      )
      const stored = lists[outcomes.indexOf(null)]!
      assert.deepEqual(await store.tokens.find(TENANT, ['same']), stored.slice(-1))
      const all = lists.flat().map((it) => it.id)
      assert.equal((await store.tokens.find(TENANT, all)).length, stored.length)
    })

    test('many in flight are all stored', async (t) => {
      const store = await opened(t)
      const lists = range(0, 5).map((k) => range(k * 1000, k * 1000 + 600).map((n) => token(n)))
      await Promise.all(lists.map((it) => succeed(store, TENANT, [insert(...it)])))
      assert.equal((await idsFound(store, TENANT, range(0, 5000))).length, 3000)
    })
  })

  describe(`Store contract: ${name}: answers`, () => {
    test('an answer is remembered exactly, until it expires', async (t) => {
      const store = await opened(t)
      const remembered: StoredAnswer = { ...stored(1), status: 201, body: bytes(700) }
      await succeed(store, TENANT, [{ kind: 'remember-answer', answer: remembered }])
      const { expiresAt } = remembered
      assert.deepEqual(await store.answers.find(TENANT, 'answer 1', expiresAt - 1), remembered)
      assert.equal(await store.answers.find(TENANT, 'answer 1', expiresAt), null)
      assert.equal(await store.answers.find(TENANT, 'answer 2', NOW), null)
      assert.equal(await store.answers.find(OTHER, 'answer 1', NOW), null)
    })

    test('an answer is remembered once in a tenant, until it expires', async (t) => {
      const store = await opened(t)
      await succeed(store, TENANT, [answer(1)])
      await succeed(store, OTHER, [answer(1)])
      const later = (ms: number): Change => {
        return { kind: 'remember-answer', answer: { ...stored(1), expiresAt: EXPIRES + ms } }
      }
      const taken = { kind: 'answer-taken' }
      assert.deepEqual(await store.commit(TENANT, [later(0)]), taken)
      assert.deepEqual(await store.commit(TENANT, [later(IDEMPOTENCY_LIFETIME_MS - 1)]), taken)
      await succeed(store, TENANT, [later(IDEMPOTENCY_LIFETIME_MS)])
      const { expiresAt } = (await store.answers.find(TENANT, 'answer 1', EXPIRES))!
      assert.equal(expiresAt, EXPIRES + IDEMPOTENCY_LIFETIME_MS)
    })
  })

  describe(`Store contract: ${name}: check()`, () => {
    test('resolves when the store can read and write', async (t) => {
      const store = await opened(t)
      await Promise.all([store.check(), store.check()])
      await store.check()
    })
  })
}

const NOW = Date.UTC(2026, 0, 1)
const EXPIRES = NOW + IDEMPOTENCY_LIFETIME_MS
const LONG = 10_000
const NONE = { total: 0, items: [] }

const TENANT = uuid(1)
const OTHER = uuid(0xffff)
const FRESH = uuid(0xfffe)

const KEYS: readonly WrappedTenantKey[] = [
  { purpose: 'enc', version: 1, wrapped: bytes(60), createdAt: NOW },
  { purpose: 'enc', version: 2, wrapped: bytes(61), createdAt: NOW + 1 },
  { purpose: 'fp', version: 1, wrapped: bytes(62), createdAt: NOW },
]

/** Changes that cannot be made after everything(1), by what they meet. */
const CONFLICTING: Record<Conflict['kind'], Change> = {
  installed: { kind: 'install', rootKey: { id: 'another', check: bytes(1) } },
  'tenant-taken': { kind: 'insert-tenant', tenant: tenant(1), keys: KEYS },
  'token-id-taken': insert(token(1)),
  'fingerprint-taken': insert(token(2, { fingerprint: 'f 1', deduplicate: true })),
  'answer-taken': answer(1),
  absent: { kind: 'delete-application', id: uuid(2) },
}

/** Ways for a long list to fail, early, late and beside. */
const SPOILED: Record<
  string,
  (tokens: readonly StoredToken[]) => { changes: Change[]; conflict: Conflict }
> = {
  'the first id is taken': (tokens) => ({
    changes: [insert(token(3000, { id: uuid(-1) }), ...tokens), answer(2)],
    conflict: taken(uuid(-1)),
  }),
  'the last id is taken': (tokens) => ({
    changes: [answer(2), insert(...tokens, token(-1))],
    conflict: taken(uuid(-1)),
  }),
  'two of them want the same id': (tokens) => ({
    changes: [insert(...tokens, token(3000, { id: uuid(7) }))],
    conflict: taken(uuid(7)),
  }),
  'one has a twin': (tokens) => ({
    changes: [insert(...tokens, token(3000, { fingerprint: 'twin', deduplicate: true }))],
    conflict: { kind: 'fingerprint-taken', type: 'card', fingerprint: 'twin' },
  }),
  'two of them are twins': (tokens) => ({
    changes: [
      insert(
        token(3000, { fingerprint: 'own' }),
        ...tokens,
        token(3001, { fingerprint: 'own', deduplicate: true }),
      ),
    ],
    conflict: { kind: 'fingerprint-taken', type: 'card', fingerprint: 'own' },
  }),
  'another change of the commit is refused': (tokens) => ({
    changes: [insert(...tokens), answer(2), answer(1)],
    conflict: { kind: 'answer-taken' },
  }),
}

async function succeed(store: Store, tenantId: string, changes: readonly Change[]): Promise<void> {
  assert.equal(await store.commit(tenantId, changes), null)
}

async function idsFound(store: Store, tenantId: string, numbers: number[]): Promise<string[]> {
  const found = await store.tokens.find(tenantId, numbers.map(uuid))
  return found.map((it) => it.id)
}

/** One of each thing, numbered `n`, the installation first. */
function everything(n: number): Change[] {
  return [
    { kind: 'install', rootKey: { id: 'root', check: bytes(9) } },
    { kind: 'insert-tenant', tenant: tenant(n), keys: KEYS },
    { kind: 'insert-application', application: application(n) },
    { kind: 'insert-application-key', key: key(n, n) },
    insert(token(n, { fingerprint: `f ${n}` })),
    answer(n),
  ]
}

/** Changes that everything(1) does not stand in the way of. */
function fresh(): Change[] {
  const own = { id: FRESH, serial: FRESH, fingerprint: FRESH, indexes: [hash(FRESH)] }
  return [
    { kind: 'insert-application', application: application(1, { id: FRESH }) },
    {
      kind: 'insert-application-key',
      key: { ...key(1, 1), id: FRESH, applicationId: FRESH, hash: hash(FRESH) },
    },
    { kind: 'update-application', application: application(1, { id: FRESH, name: 'changed' }) },
    insert({ ...token(1), ...own, deduplicate: true }),
    { kind: 'remember-answer', answer: { ...stored(1), id: FRESH } },
  ]
}

function insert(...tokens: readonly StoredToken[]): Change {
  return { kind: 'insert-tokens', tokens }
}

function insertApplication(n: number): Change {
  return { kind: 'insert-application', application: application(n, { createdAt: NOW + n }) }
}

function answer(n: number): Change {
  return { kind: 'remember-answer', answer: stored(n) }
}

function stored(n: number): StoredAnswer {
  return { id: `answer ${n}`, status: 200, body: bytes(n), expiresAt: EXPIRES }
}

function taken(id: string): Conflict {
  return { kind: 'token-id-taken', id }
}

function tenant(n: number): StoredTenant {
  return {
    id: uuid(n),
    name: `tenant ${n}`,
    plan: 'enterprise',
    settings: { fingerprintTokens: true, deduplicateTokens: false },
    createdBy: 'init',
    createdAt: NOW,
    modifiedBy: null,
    modifiedAt: null,
  }
}

function application(n: number, own: Partial<StoredApplication> = {}): StoredApplication {
  return {
    id: uuid(n),
    name: `application ${n}`,
    type: 'private',
    permissions: ['token:create', 'token:use'],
    rules: [
      {
        description: 'Für alle',
        priority: 1,
        container: '/pci/high/',
        transform: 'mask',
        permissions: ['token:read'],
      },
    ],
    expiresAt: null,
    createdBy: uuid(99),
    createdAt: NOW,
    modifiedBy: null,
    modifiedAt: null,
    ...own,
  }
}

function key(n: number, applicationNumber: number): StoredApplicationKey {
  return {
    id: uuid(n),
    applicationId: uuid(applicationNumber),
    hash: hash(uuid(n)),
    prefix: 'key_prod_abc',
    version: 1,
    createdBy: uuid(99),
    createdAt: NOW,
  }
}

function token(n: number, own: Partial<StoredToken> = {}): StoredToken {
  return {
    ...named(n),
    type: 'card',
    containers: ['/pci/high/'],
    data: bytes(120),
    cvc: null,
    metadata: null,
    details: null,
    fingerprint: null,
    deduplicate: false,
    indexes: [],
    expiresAt: null,
    createdBy: uuid(99),
    createdAt: NOW,
    modifiedBy: null,
    modifiedAt: null,
    ...own,
  }
}

function named(n: number): { id: string; serial: string } {
  return { id: uuid(n), serial: uuid(n) }
}

/** Returns a uuid that sorts by `n`, from -1. */
function uuid(n: number): string {
  return `00000000-0000-4000-8000-${(n + 1).toString(16).padStart(12, '0')}`
}

/** Returns 32 bytes that are `text`'s own. */
function hash(text: string): Uint8Array {
  return new TextEncoder().encode(text).slice(-32)
}

function bytes(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, n) => (n * 31 + length) & 255)
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n)
}

function bySerial(tokens: readonly StoredToken[]): StoredToken[] {
  return tokens.toSorted((a, b) => (a.serial < b.serial ? -1 : 1))
}

function byVersion(keys: readonly WrappedTenantKey[]): WrappedTenantKey[] {
  return keys.toSorted((a, b) => (a.purpose + a.version < b.purpose + b.version ? -1 : 1))
}

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '\0', '[', '["a"]', 'é\n'))
const instant = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const blob = fc.uint8Array({ maxLength: 400 }).map((it) => Uint8Array.from(it))
const json = fc.jsonValue()

/** Any token; an id of null stands for the serial. */
const anyToken = fc.record(
  {
    id: fc.option(fc.oneof(fc.uuid(), text)),
    type: text,
    containers: fc.array(text, { maxLength: 3 }),
    data: blob,
    cvc: fc.option(fc.record({ envelope: blob, expiresAt: instant }, { noNullPrototype: true })),
    metadata: fc.option(fc.dictionary(text, text, { noNullPrototype: true })),
    details: fc.option(fc.dictionary(text, json, { noNullPrototype: true }).map(asParsed)),
    fingerprint: fc.option(text),
    deduplicate: fc.constant(false),
    indexes: fc.array(fc.uint8Array({ minLength: 32, maxLength: 32 }).map(copied), {
      maxLength: 3,
    }),
    expiresAt: fc.option(instant),
    createdBy: fc.oneof(fc.uuid(), text),
    createdAt: instant,
    modifiedBy: fc.option(fc.oneof(fc.uuid(), text)),
    modifiedAt: fc.option(instant),
  },
  { noNullPrototype: true },
)

const NAMES = ['a', 'b', 'c']

/** A token out of so few that two drawn alike are likely. */
const smallToken = fc
  .record({
    n: fc.nat(8),
    name: fc.option(fc.oneof(fc.constantFrom(...NAMES), fc.nat(8).map(uuid))),
    fingerprint: fc.option(fc.constantFrom('f', 'g')),
    deduplicate: fc.boolean(),
    expiresAt: fc.option(fc.constantFrom(NOW, NOW + 1)),
  })
  .map(({ n, name, ...own }) => token(n, { ...own, id: name ?? uuid(n) }))

/** Adds `token` to `tokens`, or says why not: what an insert means. */
function modelInsert(tokens: StoredToken[], token: StoredToken): Conflict | null {
  const { type, fingerprint, createdAt } = token
  const live = tokens.filter((it) => it.expiresAt === null || it.expiresAt > createdAt)
  if (token.deduplicate && fingerprint !== null) {
    const twin = live.find((it) => it.type === type && it.fingerprint === fingerprint)
    if (twin !== undefined) return { kind: 'fingerprint-taken', type, fingerprint }
  }
  const names = new Set(tokens.flatMap((it) => [it.id, it.serial]))
  if (names.has(token.id) || names.has(token.serial)) return taken(token.id)
  tokens.push(token)
  return null
}

/** Details come from a parsed body: no -0, and `__proto__` is an ordinary key. */
function asParsed(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value))
}

function copied(value: Uint8Array): Uint8Array {
  return Uint8Array.from(value)
}
