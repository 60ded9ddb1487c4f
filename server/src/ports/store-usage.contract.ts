import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { StoredToken } from './stored.ts'
import {
  NOW,
  OTHER,
  TENANT,
  insert,
  named,
  opened,
  range,
  succeed,
  token,
  uuid,
  type Open,
} from './store-kit.contract.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const SPAN = { now: NOW, since: NOW - 31 * DAY_MS }

export function usageContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: usage`, () => {
    test('usage() counts by type, and is empty where there is nothing', async (t) => {
      const store = await opened(t, open)
      assert.deepEqual(await store.tokens.usage(TENANT, SPAN), [])
      await succeed(store, TENANT, [
        insert(...range(0, 11).map((n) => token(n, { type: 'card', createdAt: NOW - n }))),
        insert(token(20, { type: 'bank', createdAt: NOW - 5, ...chosen(20) })),
      ])
      await succeed(store, OTHER, [insert(token(1, { type: 'token' }))])
      assert.deepEqual(await store.tokens.usage(TENANT, SPAN), [
        { type: 'bank', count: 1, active: 1, lastCreatedAt: NOW - 5 },
        { type: 'card', count: 11, active: 11, lastCreatedAt: NOW },
      ])
    })

    test('usage() counts as active what was made since then, to the millisecond of the day', async (t) => {
      const store = await opened(t, open)
      const at = (n: number, createdAt: number) => token(n, { createdAt })
      await succeed(store, TENANT, [
        insert(at(1, SPAN.since - 1), at(2, SPAN.since), at(3, NOW - 40 * DAY_MS)),
      ])
      const [usage] = await store.tokens.usage(TENANT, SPAN)
      assert.deepEqual(usage, { type: 'card', count: 3, active: 1, lastCreatedAt: SPAN.since })
    })

    test('usage() leaves out what is expired, and only from then on', async (t) => {
      const store = await opened(t, open)
      const tokens = range(0, 2_500).map((n) => token(n, { expiresAt: NOW + n + 1 }))
      await succeed(store, TENANT, [insert(...tokens)])
      await succeed(store, TENANT, [insert(token(9_000))])
      for (const [passed, left] of [
        [0, 2_501],
        [1, 2_500],
        [2_499, 2],
        [2_500, 1],
        [DAY_MS, 1],
      ] as const) {
        const [usage] = await store.tokens.usage(TENANT, { ...SPAN, now: NOW + passed })
        assert.deepEqual([usage!.count, usage!.active], [left, left], `after ${passed} ms`)
      }
    })

    test('usage() does not count tokens of commits that were refused', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1, { createdAt: NOW - 9 }))])
      const taken = token(1)
      const deduplicate = { deduplicate: true, fingerprint: 'f' }
      for (const tokens of [
        [token(2), taken],
        [token(3, chosen(3)), taken],
        [token(4, deduplicate), token(5, deduplicate)],
        [...range(1_000, 1_300).map((n) => token(n)), taken],
      ]) {
        assert.notEqual(await store.commit(TENANT, [insert(...tokens)]), null)
      }
      const usage = { type: 'card', count: 1, active: 1, lastCreatedAt: NOW - 9 }
      assert.deepEqual(await store.tokens.usage(TENANT, SPAN), [usage])
    })

    test('usage() counts a long list at once, when its commit is made', async (t) => {
      const store = await opened(t, open)
      const tokens = range(0, 1_000).map((n) => token(n, n % 2 === 0 ? {} : { type: 'bank' }))
      const commit = store.commit(TENANT, [insert(...tokens)])
      for (let n = 0; n < 20; n++) {
        // Lets the commit make progress.
        await store.check()
        const usage = await store.tokens.usage(TENANT, SPAN)
        const counts = usage.map((it) => it.count)
        assert.ok(
          counts.every((it) => it === 500),
          String(counts),
        )
      }
      await commit
      const usage = await store.tokens.usage(TENANT, SPAN)
      assert.deepEqual(
        usage.map((it) => it.count),
        [500, 500],
      )
    })

    test('usage() is right after many commits at once, some of them refused', async (t) => {
      const store = await opened(t, open)
      const outcomes = await Promise.all(
        range(0, 400).map((n) => {
          const it = token(n % 300, n % 3 === 0 ? chosen(n % 300) : {})
          return store.commit(TENANT, [insert({ ...it, type: n % 2 === 0 ? 'card' : 'bank' })])
        }),
      )
      const made = outcomes.filter((it) => it === null).length
      const usage = await store.tokens.usage(TENANT, SPAN)
      assert.ok(made >= 300 && made < 400)
      assert.equal(
        usage.reduce((sum, it) => sum + it.count, 0),
        made,
      )
    })
  })
}

/** An id chosen by the caller. */
function chosen(n: number): Partial<StoredToken> {
  return { ...named(n), id: `chosen ${uuid(n)}` }
}
