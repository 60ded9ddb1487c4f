import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Change, Conflict } from './change.ts'
import type { StoredToken } from './stored.ts'
import {
  NOW,
  OTHER,
  TENANT,
  answer,
  byInternalId,
  bytes,
  idsFound,
  insert,
  opened,
  range,
  succeed,
  taken,
  token,
  type Open,
  uuid,
} from './store-kit.contract.ts'

export function longListContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: long lists of tokens`, () => {
    test('10,000 tokens become visible together, and not before', async (t) => {
      const store = await opened(t, open)
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
        const duplicate = await store.tokens.findByFingerprint(TENANT, 'card', 'f', NOW)
        seen.add(duplicate === null ? 0 : asked.length)
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
      assert.deepEqual(byInternalId(found), tokens)
    })

    test('10,000 that are under way when their key is retired are all there by then, or never', async (t) => {
      const store = await opened(t, open)
      const numbers = range(0, LONG)
      const commit = store.commit(TENANT, [insert(...numbers.map((n) => token(n)))])
      const outcome = commit.catch((error: unknown) => error)
      // A part of it is being written.
      await succeed(store, OTHER, [insert(token(0))])
      await succeed(store, TENANT, [{ kind: 'retire-data-keys', before: Uint8Array.of(0xff) }])
      const kept = await idsFound(store, TENANT, numbers)
      const refused = (await outcome) !== null
      assert.equal(kept.length, refused ? 0 : LONG)
      assert.equal((await idsFound(store, TENANT, numbers)).length, kept.length)
      if (refused) await assert.rejects(commit, /sealed under a replaced key/)
    })

    for (const [what, spoil] of Object.entries(SPOILED)) {
      test(`none of 2,000 is stored when ${what}`, async (t) => {
        const store = await opened(t, open)
        await succeed(store, TENANT, [insert(token(-1, { fingerprint: 'duplicate' })), answer(1)])
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
      const store = await opened(t, open)
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
      const store = await opened(t, open)
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
      const store = await opened(t, open)
      const lists = range(0, 5).map((k) => range(k * 1000, k * 1000 + 600).map((n) => token(n)))
      await Promise.all(lists.map((it) => succeed(store, TENANT, [insert(...it)])))
      assert.equal((await idsFound(store, TENANT, range(0, 5000))).length, 3000)
    })
  })
}

const LONG = 10_000

/** Ways for a long list to fail: early, late, and because of another change in the commit. */
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
  'one has a duplicate': (tokens) => ({
    changes: [insert(...tokens, token(3000, { fingerprint: 'duplicate', deduplicate: true }))],
    conflict: { kind: 'fingerprint-taken', type: 'card', fingerprint: 'duplicate' },
  }),
  'two of them are duplicates': (tokens) => ({
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
