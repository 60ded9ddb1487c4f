import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TRANSACTION_KEPT_MS } from '../base/limits.ts'
import type { Change } from './change.ts'
import type { Store } from './store.ts'
import {
  NOW,
  OTHER,
  TENANT,
  TRANSACTION_MS,
  begin,
  bytes,
  end,
  enlist,
  insert,
  opened,
  range,
  remove,
  stored,
  succeed,
  token,
  update,
  uuid,
  type Open,
} from './store-kit.contract.ts'

export function sweepContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: sweep()`, () => {
    test('removes tokens past their end, of every tenant, and no others', async (t) => {
      const store = await opened(t, open)
      const ends = [null, NOW - 1, NOW, NOW + 1]
      const tokens = range(0, 300).map((n) =>
        token(n, { expiresAt: ends[n % 4]!, indexes: [bytes(32)], id: `id ${n}` }),
      )
      for (const tenantId of [TENANT, OTHER]) await succeed(store, tenantId, [insert(...tokens)])
      await sweepAll(store, NOW)
      const ids = tokens.map((it) => it.id)
      for (const tenantId of [TENANT, OTHER]) {
        const left = tokens.filter((it) => it.expiresAt === null || it.expiresAt > NOW)
        assert.deepEqual(await store.tokens.find(tenantId, ids), left)
      }
      // Their ids are free.
      await succeed(store, TENANT, [insert(token(1001, { id: 'id 1' }))])
    })

    test('removes answers past their end, of every tenant, and no others', async (t) => {
      const store = await opened(t, open)
      for (const tenantId of [TENANT, OTHER]) {
        const answers = range(0, 150).map((n): Change => {
          const answer = { ...stored(n), expiresAt: NOW + (n % 3) }
          return { kind: 'remember-answer', answer, now: NOW - 1 }
        })
        await succeed(store, tenantId, answers)
      }
      await sweepAll(store, NOW + 1)
      for (const tenantId of [TENANT, OTHER]) {
        const left = await Promise.all(
          range(0, 150).map((n) => store.answers.find(tenantId, `answer ${n}`, NOW - 1)),
        )
        assert.deepEqual(
          left.map((it) => it !== null),
          range(0, 150).map((n) => n % 3 === 2),
        )
      }
    })

    test('removes security codes past their end and leaves the token as it was', async (t) => {
      const store = await opened(t, open)
      const cvc = (expiresAt: number) => ({ envelope: bytes(20), expiresAt })
      const tokens = range(0, 200).map((n) => token(n, { cvc: cvc(NOW + (n % 2)) }))
      await succeed(store, TENANT, [insert(...tokens)])
      await sweepAll(store, NOW)
      assert.deepEqual(
        await store.tokens.find(
          TENANT,
          tokens.map((it) => it.id),
        ),
        tokens.map((it, n) => (n % 2 === 0 ? { ...it, cvc: null } : it)),
      )
      // An update in progress finds the same revision.
      await succeed(store, TENANT, [update(tokens[0]!)])
    })

    test('ends transactions that are past their end, and forgets them a day later', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(0)), begin(1), begin(2)])
      await succeed(store, TENANT, [enlist(1), insert(token(1))])
      await succeed(store, TENANT, [enlist(1), insert(...range(10, 700).map((n) => token(n)))])
      await succeed(store, TENANT, [enlist(1), remove(token(0))])
      await succeed(store, TENANT, [end(2, 'committed')])
      const late = NOW + TRANSACTION_MS
      await sweepAll(store, late - 1)
      assert.equal((await store.transactions.find(TENANT, uuid(1)))?.state, 'open')
      await sweepAll(store, late)
      assert.equal((await store.transactions.find(TENANT, uuid(1)))?.state, 'expired')
      assert.equal((await store.transactions.find(TENANT, uuid(2)))?.state, 'committed')
      await sweepAll(store, late + TRANSACTION_KEPT_MS - 1)
      assert.notEqual(await store.transactions.find(TENANT, uuid(1)), null)
      await sweepAll(store, late + TRANSACTION_KEPT_MS)
      assert.equal(await store.transactions.find(TENANT, uuid(1)), null)
      assert.equal(await store.transactions.find(TENANT, uuid(2)), null)
      // Nothing of it is left: the internal ids are free, too.
      await succeed(store, TENANT, [insert(...range(1, 700).map((n) => token(n)))])
      await succeed(store, TENANT, [remove(token(0))])
    })

    test('leaves alone what is committed, open, and on its way', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(0)), begin(1), begin(2), begin(3)])
      for (const n of [1, 2, 3]) {
        await succeed(store, TENANT, [enlist(n), insert(token(n))])
        const list = range(n * 1000, n * 1000 + 300).map((it) => token(it))
        await succeed(store, TENANT, [enlist(n), insert(...list)])
      }
      await succeed(store, TENANT, [enlist(2), remove(token(0))])
      await succeed(store, TENANT, [end(1, 'committed')])
      await succeed(store, TENANT, [end(3, 'rolled_back')])
      const list = store.commit(TENANT, [insert(...range(5000, 6000).map((n) => token(n)))])
      await sweepAll(store, NOW)
      assert.equal(await list, null)
      await succeed(store, TENANT, [end(2, 'committed')])
      const numbers = [0, 1, 2, 3, ...range(1000, 1300), ...range(2000, 2300), ...range(3000, 3300)]
      const found = await store.tokens.find(TENANT, [...numbers, ...range(5000, 6000)].map(uuid))
      assert.equal(found.length, 2 + 300 + 300 + 1000)
    })
  })
}

async function sweepAll(store: Store, now: number): Promise<void> {
  while (await store.sweep(now));
}
