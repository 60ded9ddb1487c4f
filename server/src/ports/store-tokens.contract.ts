import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import type { JsonObject } from '../base/json.ts'
import type { Conflict } from './change.ts'
import type { StoredToken } from './stored.ts'
import {
  NOW,
  OTHER,
  TENANT,
  begin,
  byInternalId,
  idsFound,
  insert,
  named,
  opened,
  range,
  succeed,
  taken,
  token,
  type Open,
  uuid,
} from './store-kit.contract.ts'

export function tokenContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: tokens`, () => {
    test('find() returns exactly what was stored, byte for byte', async (t) => {
      const store = await opened(t, open)
      let runs = 0
      const tokens = fc.array(anyToken, { minLength: 1, maxLength: 5 })
      const property = fc.asyncProperty(tokens, async (drawn) => {
        const tenantId = uuid(++runs)
        const made = drawn.map((it, n) => ({
          ...it,
          id: it.id === null ? uuid(n) : `${n}${it.id}`,
          internalId: uuid(n),
        }))
        await succeed(store, tenantId, [insert(...made)])
        const found = await store.tokens.find(
          tenantId,
          made.map((it) => it.id),
        )
        assert.deepEqual(byInternalId(found), made)
      })
      await fc.assert(property, { numRuns: 100 })
    })

    test('find() returns each once, expired ones included, unknown ones left out', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1), token(2, { expiresAt: NOW - 1 }))])
      const asked = [uuid(2), uuid(1), uuid(1), uuid(9), 'no such', "x' or 1=1 --", '']
      const found = await store.tokens.find(TENANT, asked)
      assert.deepEqual(byInternalId(found), [token(1), token(2, { expiresAt: NOW - 1 })])
      assert.deepEqual(await store.tokens.find(TENANT, []), [])
    })

    test('find() knows a token by its id, never by an internal id that differs', async (t) => {
      const store = await opened(t, open)
      const named = token(1, { id: '384-28-3948' })
      const uuidNamed = token(2, { id: uuid(20) })
      await succeed(store, TENANT, [insert(named, uuidNamed)])
      assert.deepEqual(await store.tokens.find(TENANT, [uuid(1), uuid(2)]), [])
      const found = await store.tokens.find(TENANT, ['384-28-3948', uuid(20)])
      assert.deepEqual(byInternalId(found), [named, uuidNamed])
    })

    test('whatever one tenant stores, another’s look-ups return nothing of it', async (t) => {
      const store = await opened(t, open)
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
      await fc.assert(property, { numRuns: 25 })
    })

    test('an id or internal id is taken once in a tenant, whichever came first', async (t) => {
      const store = await opened(t, open)
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
      const store = await opened(t, open)
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
      const store = await opened(t, open)
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

    test('deduplication meets a duplicate that was there, or comes in the same commit', async (t) => {
      const store = await opened(t, open)
      const duplicates = { kind: 'fingerprint-taken', type: 'card', fingerprint: 'f' } as const
      const duplicate = token(2, { fingerprint: 'f', deduplicate: true })
      const together = await store.commit(TENANT, [
        insert(token(1, { fingerprint: 'f' }), duplicate),
      ])
      assert.deepEqual(together, duplicates)
      await succeed(store, TENANT, [insert(token(1, { fingerprint: 'f' }))])
      assert.deepEqual(await store.commit(TENANT, [insert(duplicate)]), duplicates)
      // Only tokens that ask for deduplication are checked.
      await succeed(store, TENANT, [insert({ ...duplicate, deduplicate: false })])
      // Tokens of other types, fingerprints or tenants are no duplicates; nor are tokens without a fingerprint.
      await succeed(store, TENANT, [
        insert(
          { ...duplicate, ...named(3), type: 'bank' },
          { ...duplicate, ...named(4), fingerprint: 'F' },
          { ...duplicate, ...named(5), fingerprint: null },
          { ...duplicate, ...named(6), fingerprint: null },
        ),
      ])
      await succeed(store, OTHER, [insert(duplicate)])
    })

    test('an expired token is no duplicate of another; expiring later, it is', async (t) => {
      const store = await opened(t, open)
      for (const [n, expiresAt] of [NOW - 1, NOW, NOW + 1].entries()) {
        const [first, second] = [token(2 * n), token(2 * n + 1)]
        const fingerprint = `f${n}`
        await succeed(store, TENANT, [insert({ ...first, fingerprint, expiresAt })])
        const duplicate = { ...second, fingerprint, deduplicate: true }
        const conflict = await store.commit(TENANT, [insert(duplicate)])
        assert.equal(conflict === null, expiresAt <= NOW, String(expiresAt - NOW))
      }
    })

    test('of duplicates in flight exactly one is stored', async (t) => {
      const store = await opened(t, open)
      const outcomes = await Promise.all(
        range(0, 50).map((n) =>
          store.commit(TENANT, [insert(token(n, { fingerprint: 'f', deduplicate: true }))]),
        ),
      )
      assert.equal(outcomes.filter((it) => it === null).length, 1)
      assert.equal((await idsFound(store, TENANT, range(0, 50))).length, 1)
    })

    test('findByFingerprint() returns the oldest that is not expired, or null', async (t) => {
      const store = await opened(t, open)
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

    test('findByFingerprint() returns the oldest in or below one of the containers', async (t) => {
      const store = await opened(t, open)
      const f = { fingerprint: 'f' }
      await succeed(store, TENANT, [
        insert(
          token(1, { ...f, containers: ['/a/'] }),
          token(2, { ...f, containers: ['/b/', '/a/b/'] }),
          token(3, { ...f, containers: ['/b/c/'] }),
          token(4, { ...f, containers: ['/bc/'] }),
        ),
        begin(7),
      ])
      for (const within of [undefined, uuid(7)]) {
        const found = async (...containers: string[]) =>
          (await store.tokens.findByFingerprint(TENANT, 'card', 'f', NOW, within, containers))?.id
        assert.equal(await found('/'), uuid(1))
        assert.equal(await found('/a/b/'), uuid(2))
        assert.equal(await found('/x/', '/b/'), uuid(2))
        assert.equal(await found('/b/c/'), uuid(3))
        assert.equal(await found('/bc/', '/b/c/d/'), uuid(4))
        assert.equal(await found('/b/c/d/'), undefined)
        assert.equal(await found(), undefined)
      }
    })

    test('knownByFingerprint() names the oldest, however much data it has', async (t) => {
      const store = await opened(t, open)
      const data = new Uint8Array(10_000)
      await succeed(store, TENANT, [
        insert(
          token(1, { fingerprint: 'f', id: 'an alias', data }),
          token(2, { fingerprint: 'f' }),
        ),
        begin(7),
      ])
      for (const within of [undefined, uuid(7)]) {
        const known = (fingerprint: string) =>
          store.tokens.knownByFingerprint(TENANT, 'card', fingerprint, NOW, within)
        assert.equal(await known('f'), uuid(1))
        assert.equal(await known('g'), null)
      }
    })

    test('commits of any tokens agree with a model of ten lines', async (t) => {
      const store = await opened(t, open)
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
        assert.deepEqual(byInternalId(found), byInternalId(model))
      })
      await fc.assert(property, { numRuns: 60 })
    })
  })
}

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '\0', '[', '["a"]', 'é\n'))

const instant = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })

/** Mostly short: each byte takes time to draw. */
const blob = fc
  .oneof(
    { arbitrary: fc.uint8Array({ maxLength: 20 }), weight: 9 },
    { arbitrary: fc.uint8Array({ minLength: 200, maxLength: 400 }), weight: 1 },
  )
  .map((it) => Uint8Array.from(it))

const json = fc.jsonValue()

/** Any token; an id of null stands for the internal id. */
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
    // A new token was never changed.
    revision: fc.constant(0),
    uncommitted: fc.constant(false),
  },
  { noNullPrototype: true },
)

const NAMES = ['a', 'b', 'c']

/** A token from so few values that two similar ones are likely. */
const smallToken = fc
  .record({
    n: fc.nat(8),
    name: fc.option(fc.oneof(fc.constantFrom(...NAMES), fc.nat(8).map(uuid))),
    fingerprint: fc.option(fc.constantFrom('f', 'g')),
    deduplicate: fc.boolean(),
    expiresAt: fc.option(fc.constantFrom(NOW, NOW + 1)),
  })
  .map(({ n, name, ...own }) => token(n, { ...own, id: name ?? uuid(n) }))

/** Adds `token` to `tokens`, or returns the conflict: a model of an insert. */
function modelInsert(tokens: StoredToken[], token: StoredToken): Conflict | null {
  const { type, fingerprint, createdAt } = token
  const live = tokens.filter((it) => it.expiresAt === null || it.expiresAt > createdAt)
  if (token.deduplicate && fingerprint !== null) {
    const duplicate = live.find((it) => it.type === type && it.fingerprint === fingerprint)
    if (duplicate !== undefined) return { kind: 'fingerprint-taken', type, fingerprint }
  }
  const names = new Set(tokens.flatMap((it) => [it.id, it.internalId]))
  if (names.has(token.id) || names.has(token.internalId)) return taken(token.id)
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
