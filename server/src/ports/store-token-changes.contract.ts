import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from './store.ts'
import type { StoredToken } from './stored.ts'
import {
  NOW,
  OTHER,
  TENANT,
  answer,
  bytes,
  hash,
  insert,
  opened,
  range,
  remove,
  succeed,
  taken,
  token,
  update,
  uuid,
  type Open,
} from './store-kit.contract.ts'

export function tokenChangeContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: update-token and delete-token`, () => {
    test('an update replaces everything that may change, byte for byte', async (t) => {
      const store = await opened(t, open)
      for (const before of [token(1), token(2, { id: 'my own', indexes: [hash('a')] })]) {
        await succeed(store, TENANT, [insert(before)])
        const change = update(before, EVERYTHING)
        await succeed(store, TENANT, [change])
        assert.deepEqual(await store.tokens.find(TENANT, [before.id]), [change.token])
        const back = update(change.token, { ...before, revision: 1 })
        await succeed(store, TENANT, [{ ...back, token: { ...back.token, revision: 2 } }])
        const again = await store.tokens.find(TENANT, [before.id])
        assert.deepEqual(again, [{ ...before, revision: 2 }])
      }
    })

    test('an update of another revision than the last is a conflict and changes nothing', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1))])
      const first = update(token(1), { metadata: { by: 'first' } })
      await succeed(store, TENANT, [first])
      for (const revision of [0, 2, 7]) {
        const late = update(token(1, { revision }), { metadata: { by: 'late' } })
        assert.deepEqual(await store.commit(TENANT, [late, answer(1)]), CHANGED)
        assert.deepEqual(await store.commit(TENANT, [remove(token(1, { revision }))]), CHANGED)
      }
      assert.deepEqual(await find(store, 1), [first.token])
      assert.equal(await store.answers.find(TENANT, 'answer 1', NOW), null)
    })

    test('of many updates of what was read at the same time exactly one is made', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1))])
      const outcomes = await Promise.all(
        range(0, 50).map((n) =>
          store.commit(TENANT, [update(token(1), { metadata: { n: String(n) } })]),
        ),
      )
      const made = outcomes.flatMap((it, n) => (it === null ? [n] : []))
      assert.equal(made.length, 1)
      assert.deepEqual((await find(store, 1))[0]?.metadata, { n: String(made[0]) })
    })

    test('a token that is absent, another tenant’s or past its end cannot be changed', async (t) => {
      const store = await opened(t, open)
      const ending = token(1, { expiresAt: NOW + 10 })
      await succeed(store, TENANT, [insert(ending)])
      for (const [tenantId, it, now] of [
        [TENANT, token(2), NOW],
        [OTHER, ending, NOW],
        [TENANT, ending, NOW + 10],
      ] as const) {
        assert.deepEqual(await store.commit(tenantId, [update(it, {}, { now })]), CHANGED)
        assert.deepEqual(await store.commit(tenantId, [remove(it, now)]), CHANGED)
      }
      assert.deepEqual(await find(store, 1), [ending])
      await succeed(store, TENANT, [update(ending, {}, { now: NOW + 9 })])
    })

    test('a token that is deleted is gone, and its id and fingerprint are free', async (t) => {
      const store = await opened(t, open)
      const before = token(1, { id: 'my own', fingerprint: 'f', indexes: [bytes(32)] })
      await succeed(store, TENANT, [insert(before, token(2, { fingerprint: 'g' }))])
      await succeed(store, TENANT, [remove(before)])
      assert.deepEqual(await store.tokens.find(TENANT, ['my own', uuid(1)]), [])
      assert.equal(await store.tokens.findByFingerprint(TENANT, 'card', 'f', NOW), null)
      assert.equal((await find(store, 2)).length, 1)
      assert.deepEqual(await store.commit(TENANT, [remove(before)]), CHANGED)
      await succeed(store, TENANT, [insert({ ...before, deduplicate: true })])
      assert.equal((await store.tokens.find(TENANT, ['my own'])).length, 1)
    })

    test('an internal id that was deleted can be a name', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1), token(2, { id: uuid(3) }))])
      const named = token(4, { id: uuid(1) })
      assert.deepEqual(await store.commit(TENANT, [insert(named)]), taken(uuid(1)))
      await succeed(store, TENANT, [remove(token(1)), insert(named)])
      assert.deepEqual(await find(store, 1), [named])
    })

    test('an update moves a token from one fingerprint to another', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1, { fingerprint: 'f' }))])
      const change = update(token(1), { fingerprint: 'g' })
      await succeed(store, TENANT, [change])
      assert.equal(await store.tokens.findByFingerprint(TENANT, 'card', 'f', NOW), null)
      const found = await store.tokens.findByFingerprint(TENANT, 'card', 'g', NOW)
      assert.deepEqual(found, change.token)
    })

    test('an update that would make a duplicate is a conflict where that was asked', async (t) => {
      const store = await opened(t, open)
      const duplicate = token(1, { fingerprint: 'f' })
      const ended = token(3, { fingerprint: 'e', expiresAt: NOW })
      await succeed(store, TENANT, [insert(duplicate, token(2), ended)])
      const to = (fingerprint: string) =>
        update(token(2), { fingerprint }, { unlessDuplicate: true })
      assert.deepEqual(await store.commit(TENANT, [to('f')]), {
        kind: 'fingerprint-taken',
        type: 'card',
        fingerprint: 'f',
      })
      // A token is no duplicate of itself, of an expired token, or of one of another type.
      await succeed(store, TENANT, [update(duplicate, {}, { unlessDuplicate: true })])
      await succeed(store, TENANT, [to('e')])
      const elsewhere = token(4, { type: 'token', fingerprint: 'f' })
      await succeed(store, TENANT, [insert(elsewhere)])
      await succeed(store, TENANT, [update(elsewhere, {}, { unlessDuplicate: true })])
      await succeed(store, TENANT, [
        update(token(2, { revision: 1 }), { fingerprint: 'f' }, { unlessDuplicate: false }),
      ])
    })

    test('changes of a commit are made in order, all or none', async (t) => {
      const store = await opened(t, open)
      const [one, two] = [token(1), token(2)]
      await succeed(store, TENANT, [insert(one, two)])
      const first = update(one, { metadata: { a: 'b' } })
      assert.deepEqual(await store.commit(TENANT, [first, remove(two), remove(one)]), CHANGED)
      assert.deepEqual(await find(store, 1, 2), [one, two])
      await succeed(store, TENANT, [first, remove(two), remove(first.token)])
      assert.deepEqual(await find(store, 1, 2), [])
    })
  })
}

const CHANGED = { kind: 'token-changed' } as const

const EVERYTHING: Partial<StoredToken> = {
  containers: ['/a/', '/b/'],
  data: bytes(77),
  cvc: { envelope: bytes(9), expiresAt: NOW + 5 },
  metadata: { a: 'b' },
  details: { mask: '{{ data }}' },
  fingerprint: 'f',
  deduplicate: true,
  indexes: [bytes(32), hash('x'), bytes(200)],
  expiresAt: NOW + 50,
  modifiedBy: uuid(98),
  modifiedAt: NOW + 1,
}

async function find(store: Store, ...numbers: number[]): Promise<StoredToken[]> {
  return await store.tokens.find(TENANT, numbers.map(uuid))
}
