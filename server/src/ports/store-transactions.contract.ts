import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PENDING_MAX } from '../base/limits.ts'
import type { Change } from './change.ts'
import type { Store } from './store.ts'
import type { FoundToken, StoredToken, StoredTransaction } from './stored.ts'
import {
  NOW,
  OTHER,
  TENANT,
  TRANSACTION_MS,
  answer,
  begin,
  bytes,
  end,
  enlist,
  insert,
  opened,
  range,
  remove,
  succeed,
  taken,
  token,
  transaction,
  update,
  uuid,
  type Open,
} from './store-kit.contract.ts'

const LATE = NOW + TRANSACTION_MS
const NOT_OPEN = { kind: 'transaction-not-open' } as const
const FULL_UP = { kind: 'transactions-open-max' } as const
const LOCKED = { kind: 'token-locked' } as const
const CHANGED = { kind: 'token-changed' } as const

/** Changes that end a transaction without a commit, and their times. */
const DEATHS = { 'it is rolled back': end(7, 'rolled_back'), 'it expires': end(7, 'expired', LATE) }

export function transactionContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: transactions`, () => {
    test('one that is opened is found, by its tenant alone', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [begin(7)])
      assert.deepEqual(await store.transactions.find(TENANT, uuid(7)), transaction(7))
      assert.equal(await store.transactions.find(OTHER, uuid(7)), null)
      assert.equal(await store.transactions.find(TENANT, uuid(8)), null)
      assert.deepEqual(await store.commit(OTHER, [end(7, 'committed')]), NOT_OPEN)
      assert.deepEqual(await store.commit(OTHER, [enlist(7), insert(token(1))]), NOT_OPEN)
      assert.deepEqual(await store.commit(OTHER, [end(7, 'expired', LATE)]), NOT_OPEN)
    })

    test('an application opens openMax at most; those that ended or expired do not count', async (t) => {
      const store = await opened(t, open)
      const opening = (n: number, own: Partial<StoredTransaction> = {}): Change => {
        return { kind: 'open-transaction', transaction: { ...transaction(n), ...own }, openMax: 3 }
      }
      /** Opens ten at once, in commits of their own, and returns how many were opened. */
      const openedOf = async (first: number, own?: Partial<StoredTransaction>) => {
        const commits = range(first, first + 10).map((n) => store.commit(TENANT, [opening(n, own)]))
        const conflicts = await Promise.all(commits)
        for (const it of conflicts) if (it !== null) assert.deepEqual(it, FULL_UP)
        return conflicts.filter((it) => it === null).length
      }
      assert.equal(await openedOf(10), 3)
      assert.equal(await openedOf(20), 0)
      assert.equal(await openedOf(30, { createdBy: uuid(98) }), 3)
      assert.equal(await store.commit(OTHER, [opening(40)]), null)
      await succeed(store, TENANT, [end(10, 'committed')])
      await succeed(store, TENANT, [end(11, 'rolled_back')])
      assert.equal(await openedOf(50), 2)
      const late = { createdAt: LATE, expiresAt: LATE + 1 }
      assert.equal(await openedOf(60, { ...late, createdAt: LATE - 1 }), 0)
      assert.equal(await openedOf(70, late), 3)
      // In one commit: all or none.
      const several = [opening(80, { createdBy: uuid(97) }), opening(81, { createdBy: uuid(97) })]
      await succeed(store, TENANT, several)
      const more = [opening(82, { createdBy: uuid(97) }), opening(83, { createdBy: uuid(97) })]
      assert.deepEqual(await store.commit(TENANT, more), FULL_UP)
      assert.equal(await store.transactions.find(TENANT, uuid(82)), null)
    })

    test('holderOf() finds the one that created, changed or deleted a token, until it ends', async (t) => {
      const store = await opened(t, open)
      const holders = async () =>
        await Promise.all(
          [1, 2, 3, 4].map(async (n) => (await store.transactions.holderOf(TENANT, uuid(n)))?.id),
        )
      await succeed(store, TENANT, [insert(token(2), token(3), token(4))])
      await succeed(store, TENANT, [begin(7), enlist(7), insert(token(1))])
      await succeed(store, TENANT, [enlist(7), update(token(2))])
      await succeed(store, TENANT, [enlist(7), remove(token(3))])
      assert.deepEqual(await holders(), [uuid(7), uuid(7), uuid(7), undefined])
      assert.equal(await store.transactions.holderOf(OTHER, uuid(1)), null)
      await succeed(store, TENANT, [end(7, 'rolled_back')])
      assert.deepEqual(await holders(), [undefined, undefined, undefined, undefined])
    })

    test('it ends once: in time by a commit or a rollback, then by itself', async (t) => {
      const store = await opened(t, open)
      for (const [n, as] of (['committed', 'rolled_back', 'expired'] as const).entries()) {
        await succeed(store, TENANT, [begin(n)])
        const [right, wrong] = as === 'expired' ? [LATE, LATE - 1] : [LATE - 1, LATE]
        assert.deepEqual(await store.commit(TENANT, [end(n, as, wrong)]), NOT_OPEN)
        await succeed(store, TENANT, [end(n, as, right)])
        assert.equal((await store.transactions.find(TENANT, uuid(n)))?.state, as)
        for (const other of ['committed', 'rolled_back', 'expired'] as const) {
          for (const now of [NOW, LATE]) {
            assert.deepEqual(await store.commit(TENANT, [end(n, other, now)]), NOT_OPEN)
          }
        }
        assert.deepEqual(await store.commit(TENANT, [enlist(n), insert(token(1))]), NOT_OPEN)
        assert.equal((await store.transactions.find(TENANT, uuid(n)))?.state, as)
      }
    })

    test('past its end nothing is added to it', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [begin(7)])
      const tokens = range(0, 600).map((n) => token(n))
      for (const list of [tokens, tokens.slice(0, 1)]) {
        const changes = [enlist(7, LATE), insert(...list), answer(1)]
        assert.deepEqual(await store.commit(TENANT, changes), NOT_OPEN)
      }
      assert.equal(await store.answers.find(TENANT, 'answer 1', NOW), null)
      await succeed(store, TENANT, [insert(...tokens)])
    })

    for (const count of [1, 3, 600]) {
      test(`${count} tokens are made unseen, and seen when it is committed`, async (t) => {
        const store = await opened(t, open)
        await succeed(store, TENANT, [begin(7), begin(8)])
        const tokens = range(0, count).map((n) => token(n, { fingerprint: `f ${n}` }))
        await succeed(store, TENANT, [enlist(7), insert(...tokens), answer(1)])
        const ids = tokens.map((it) => it.id)
        assert.deepEqual(await store.tokens.find(TENANT, ids), [])
        assert.deepEqual(await store.tokens.find(TENANT, ids, uuid(8)), [])
        assert.equal(await store.tokens.findByFingerprint(TENANT, 'card', 'f 0', NOW), null)
        // Changes that are not about tokens are made at once.
        assert.notEqual(await store.answers.find(TENANT, 'answer 1', NOW), null)

        const within = await store.tokens.find(TENANT, ids, uuid(7))
        assert.deepEqual(
          within,
          tokens.map((it) => ({ ...it, uncommitted: true })),
        )
        await succeed(store, TENANT, [end(7, 'committed')])
        assert.deepEqual(await store.tokens.find(TENANT, ids), tokens)
        const duplicate = await store.tokens.findByFingerprint(TENANT, 'card', 'f 0', NOW)
        assert.deepEqual(duplicate, tokens[0])
        assert.deepEqual(await store.tokens.find(TENANT, ids, uuid(8)), tokens)
      })

      for (const [how, death] of Object.entries(DEATHS)) {
        test(`${count} tokens are never seen when ${how}, and their ids are free at once`, async (t) => {
          const store = await opened(t, open)
          await succeed(store, TENANT, [begin(7)])
          const tokens = range(0, count).map((n) => token(n, { id: `id ${n}`, fingerprint: 'f' }))
          await succeed(store, TENANT, [enlist(7), insert(...tokens)])
          const again = tokens.map((it, n) => ({
            ...it,
            internalId: uuid(n + 5000),
            createdAt: NOW + 1,
          }))
          assert.deepEqual(await store.commit(TENANT, [insert(...again)]), taken('id 0'))
          await succeed(store, TENANT, [death])
          const ids = tokens.map((it) => it.id)
          assert.deepEqual(await store.tokens.find(TENANT, ids), [])
          assert.equal(await store.tokens.findByFingerprint(TENANT, 'card', 'f', NOW), null)
          await succeed(store, TENANT, [insert({ ...again[0]!, deduplicate: true })])
          await succeed(store, TENANT, [insert(...again.slice(1))])
          assert.deepEqual(await store.tokens.find(TENANT, ids), [
            { ...again[0]!, deduplicate: true },
            ...again.slice(1),
          ])
          await sweepAll(store, LATE)
          assert.equal((await store.tokens.find(TENANT, ids)).length, count)
        })
      }
    }

    test('an id is free the moment its transaction is past its end, though no caller has ended it', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [begin(7)])
      const mine = token(1, { id: 'mine' })
      await succeed(store, TENANT, [enlist(7), insert(mine)])
      const other = token(2, { id: 'mine', createdAt: LATE - 1 })
      assert.deepEqual(await store.commit(TENANT, [insert(other)]), taken('mine'))
      await succeed(store, TENANT, [insert({ ...other, createdAt: LATE })])
      // A commit with an earlier reading of the clock comes too late.
      assert.deepEqual(await store.commit(TENANT, [end(7, 'committed', LATE - 1)]), NOT_OPEN)
      assert.equal((await store.transactions.find(TENANT, uuid(7)))?.state, 'expired')
    })

    test('an update and a deletion wait for the commit, and then are whole', async (t) => {
      const store = await opened(t, open)
      const [one, two, three] = [
        token(1, { fingerprint: 'f', indexes: [bytes(32), bytes(33)] }),
        token(2, { id: 'two', indexes: [bytes(34)] }),
        token(3),
      ]
      await succeed(store, TENANT, [insert(one, two, three), begin(7)])
      const change = update(one, { metadata: { a: 'b' }, fingerprint: 'g', indexes: [bytes(35)] })
      await succeed(store, TENANT, [enlist(7), change])
      await succeed(store, TENANT, [enlist(7), remove(two)])
      const ids = [uuid(1), 'two', uuid(3)]
      assert.deepEqual(await store.tokens.find(TENANT, ids), [one, two, three])
      assert.deepEqual(await duplicateOf(store, 'f'), one)
      assert.equal(await duplicateOf(store, 'g'), null)
      assert.deepEqual(await store.tokens.find(TENANT, ids, uuid(7)), [change.token, three])
      assert.equal(await duplicateOf(store, 'f', uuid(7)), null)
      assert.deepEqual(await duplicateOf(store, 'g', uuid(7)), change.token)
      for (const [path, found] of [
        [change.token.containers[0]!, change.token],
        ['/elsewhere/', null],
      ] as const) {
        const { tokens } = store
        const inPath = [path]
        assert.deepEqual(
          await tokens.findByFingerprint(TENANT, 'card', 'g', NOW, uuid(7), inPath),
          found,
        )
      }
      assert.equal(
        await store.tokens.knownByFingerprint(TENANT, 'card', 'g', NOW, uuid(7)),
        change.token.internalId,
      )
      await succeed(store, TENANT, [end(7, 'committed')])
      assert.deepEqual(await store.tokens.find(TENANT, ids), [change.token, three])
      assert.deepEqual(await duplicateOf(store, 'g'), change.token)
      await succeed(store, TENANT, [remove(change.token), insert(token(4, { id: 'two' }))])
    })

    for (const [how, death] of Object.entries(DEATHS)) {
      test(`an update and a deletion never happen when ${how}, and their locks are void`, async (t) => {
        const store = await opened(t, open)
        const [one, two] = [token(1), token(2)]
        await succeed(store, TENANT, [insert(one, two), begin(7), begin(8)])
        await succeed(store, TENANT, [enlist(7), update(one, { metadata: { a: 'b' } })])
        await succeed(store, TENANT, [enlist(7), remove(two)])
        await succeed(store, TENANT, [death])
        assert.deepEqual(await find(store, 1, 2), [one, two])
        const change = update(one, { metadata: { c: 'd' } })
        await succeed(store, TENANT, [change])
        await succeed(store, TENANT, [enlist(8), remove(two)])
        await sweepAll(store, NOW)
        await succeed(store, TENANT, [end(8, 'committed')])
        assert.deepEqual(await find(store, 1, 2), [change.token])
      })
    }

    test('a lock keeps out every other change until its transaction ends', async (t) => {
      const store = await opened(t, open)
      const [one, two] = [token(1), token(2)]
      await succeed(store, TENANT, [insert(one, two), begin(7), begin(8)])
      const first = update(one, { metadata: { n: '1' } })
      await succeed(store, TENANT, [enlist(7), first])
      await succeed(store, TENANT, [enlist(7), remove(two)])
      for (const it of [one, two, first.token]) {
        for (const change of [update(it), remove(it)]) {
          assert.deepEqual(await store.commit(TENANT, [change]), LOCKED)
          assert.deepEqual(await store.commit(TENANT, [enlist(8), change]), LOCKED)
        }
      }
      // Another tenant's token with the same internal id is another token.
      await succeed(store, OTHER, [insert(one)])
      await succeed(store, OTHER, [update(one)])
      await succeed(store, TENANT, [end(7, 'committed')])
      await succeed(store, TENANT, [update(first.token)])
    })

    test('a lock is void the moment its transaction is past its end, though no caller has ended it', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1)), begin(7)])
      await succeed(store, TENANT, [enlist(7), remove(token(1))])
      const change = (now: number) => update(token(1), { metadata: { a: 'b' } }, { now })
      assert.deepEqual(await store.commit(TENANT, [change(LATE - 1)]), LOCKED)
      await succeed(store, TENANT, [change(LATE)])
      // A commit with an earlier reading of the clock comes too late.
      assert.deepEqual(await store.commit(TENANT, [end(7, 'committed', LATE - 1)]), NOT_OPEN)
      assert.deepEqual(await find(store, 1), [change(LATE).token])
    })

    test('it changes again what it has changed, and not what it has deleted', async (t) => {
      const store = await opened(t, open)
      const one = token(1)
      await succeed(store, TENANT, [insert(one), begin(7)])
      const first = update(one, { metadata: { n: '1' } })
      const second = update(first.token, { metadata: { n: '2' } })
      await succeed(store, TENANT, [enlist(7), first])
      assert.deepEqual(await store.commit(TENANT, [enlist(7), first]), CHANGED)
      await succeed(store, TENANT, [enlist(7), second])
      assert.deepEqual(await store.tokens.find(TENANT, [one.id], uuid(7)), [second.token])
      assert.deepEqual(await store.commit(TENANT, [enlist(7), remove(first.token)]), CHANGED)
      await succeed(store, TENANT, [enlist(7), remove(second.token)])
      assert.deepEqual(await store.tokens.find(TENANT, [one.id], uuid(7)), [])
      for (const change of [update(one), update(second.token), remove(second.token)]) {
        assert.deepEqual(await store.commit(TENANT, [enlist(7), change]), CHANGED)
      }
      await succeed(store, TENANT, [end(7, 'committed')])
      assert.deepEqual(await find(store, 1), [])
    })

    test('it changes and deletes what it has made, unseen by others', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [begin(7), begin(8)])
      const own = range(0, 400).map((n) => token(n, { indexes: [bytes(32)] }))
      await succeed(store, TENANT, [enlist(7), insert(...own.slice(0, 2))])
      await succeed(store, TENANT, [enlist(7), insert(...own.slice(2))])
      const seen = await store.tokens.find(
        TENANT,
        [uuid(0), uuid(1), uuid(300), uuid(301)],
        uuid(7),
      )
      const [a, b, c, d] = seen as [StoredToken, StoredToken, StoredToken, StoredToken]
      const changes = [update(a, { metadata: { n: 'a' } }), update(c, { metadata: { n: 'c' } })]
      for (const it of [...changes, remove(b), remove(d)]) {
        assert.deepEqual(await store.commit(TENANT, [it]), CHANGED)
        assert.deepEqual(await store.commit(TENANT, [enlist(8), it]), CHANGED)
        await succeed(store, TENANT, [enlist(7), it])
        assert.deepEqual(await store.commit(TENANT, [enlist(7), it]), CHANGED)
      }
      assert.deepEqual(await find(store, 0, 1, 300, 301), [])
      await succeed(store, TENANT, [end(7, 'committed')])
      const committed = changes.map(({ token: it }) => ({ ...it, uncommitted: false }))
      assert.deepEqual(await find(store, 0, 1, 300, 301), committed)
      assert.equal((await find(store, ...range(0, 400))).length, 398)
    })

    test('duplicates are those that are committed and its own, never those of others', async (t) => {
      const store = await opened(t, open)
      const there = token(1, { fingerprint: 'there' })
      await succeed(store, TENANT, [insert(there), begin(7), begin(8)])
      const f = { fingerprint: 'f', deduplicate: true }
      await succeed(store, TENANT, [enlist(7), insert(token(2, f))])
      const duplicate = (fingerprint: string) => ({
        kind: 'fingerprint-taken',
        type: 'card',
        fingerprint,
      })
      const again = { ...f, fingerprint: 'there' }
      for (const changes of [[enlist(7)], [enlist(8)], []]) {
        const conflict = await store.commit(TENANT, [...changes, insert(token(3, again))])
        assert.deepEqual(conflict, duplicate('there'))
      }
      const mine = await store.commit(TENANT, [enlist(7), insert(token(3, f))])
      assert.deepEqual(mine, duplicate('f'))
      await succeed(store, TENANT, [enlist(8), insert(token(4, f))])
      await succeed(store, TENANT, [insert(token(5, f))])
      assert.deepEqual(await store.commit(TENANT, [insert(token(6, f))]), duplicate('f'))
      for (const n of [7, 8]) await succeed(store, TENANT, [end(n, 'committed')])
      assert.equal((await find(store, 2, 4, 5)).length, 3)
    })

    test('a duplicate that it has deleted or changed does not count for it, and does for others', async (t) => {
      const store = await opened(t, open)
      const [one, two] = [token(1, { fingerprint: 'a' }), token(2, { fingerprint: 'b' })]
      await succeed(store, TENANT, [insert(one, two), begin(7)])
      await succeed(store, TENANT, [enlist(7), remove(one)])
      await succeed(store, TENANT, [enlist(7), update(two, { fingerprint: 'c' })])
      const like = (n: number, fingerprint: string) =>
        insert(token(n, { fingerprint, deduplicate: true }))
      for (const [n, fingerprint] of ['a', 'b'].entries()) {
        const conflict = await store.commit(TENANT, [like(n + 10, fingerprint)])
        assert.equal(conflict?.kind, 'fingerprint-taken')
        await succeed(store, TENANT, [enlist(7), like(n + 20, fingerprint)])
      }
      const changed = await store.commit(TENANT, [enlist(7), like(30, 'c')])
      assert.equal(changed?.kind, 'fingerprint-taken')
      await succeed(store, TENANT, [like(31, 'c')])
      const own = update(
        token(20, { fingerprint: 'a', uncommitted: true }),
        { fingerprint: 'c' },
        {
          unlessDuplicate: true,
        },
      )
      assert.equal((await store.commit(TENANT, [enlist(7), own]))?.kind, 'fingerprint-taken')
    })

    test('a token that expires before the commit stays gone', async (t) => {
      const store = await opened(t, open)
      const ending = token(1, { expiresAt: NOW + 10, indexes: [bytes(32)] })
      await succeed(store, TENANT, [insert(ending), begin(7)])
      const change = update(ending, { expiresAt: null })
      await succeed(store, TENANT, [enlist(7), change])
      const within = await store.tokens.find(TENANT, [uuid(1)], uuid(7))
      assert.deepEqual(within, [{ ...change.token, expiresAt: NOW + 10 }])
      await succeed(store, TENANT, [end(7, 'committed', NOW + 10)])
      assert.deepEqual(await find(store, 1), [ending])
      await sweepAll(store, NOW + 10)
      assert.deepEqual(await find(store, 1), [])
    })

    test(`${PENDING_MAX} tokens can wait for it, and no more; what it makes is not counted`, async (t) => {
      const store = await opened(t, open)
      const tokens = range(0, PENDING_MAX + 1).map((n) => token(n))
      await succeed(store, TENANT, [insert(...tokens), begin(7)])
      const changes = tokens.map((it, n): Change => (n % 2 === 0 ? update(it) : remove(it)))
      const outcomes = await Promise.all(
        changes.slice(0, -1).map((it) => store.commit(TENANT, [enlist(7), it])),
      )
      assert.deepEqual(
        outcomes.filter((it) => it !== null),
        [],
      )
      const full = await store.commit(TENANT, [enlist(7), changes.at(-1)!])
      assert.deepEqual(full, { kind: 'transaction-full' })
      // The same ones again, and new ones.
      await succeed(store, TENANT, [enlist(7), update(token(0, { revision: 1 }))])
      await succeed(store, TENANT, [enlist(7), insert(...range(5000, 5600).map((n) => token(n)))])
      await succeed(store, TENANT, [update(tokens.at(-1)!)])
      await succeed(store, TENANT, [end(7, 'committed')])
      const left = await find(store, ...range(0, PENDING_MAX))
      assert.equal(left.length, PENDING_MAX / 2)
    })

    test('of a commit, a rollback and an expiry at the same time exactly one wins', async (t) => {
      const store = await opened(t, open)
      for (const n of range(0, 50)) {
        await succeed(store, TENANT, [begin(n)])
        await succeed(store, TENANT, [enlist(n), insert(token(n))])
        const ends = [end(n, 'committed'), end(n, 'rolled_back'), end(n, 'expired', LATE)]
        const outcomes = await Promise.all(ends.map((it) => store.commit(TENANT, [it])))
        const won = outcomes.flatMap((it, at) => (it === null ? [at] : []))
        assert.equal(won.length, 1)
        const state = (await store.transactions.find(TENANT, uuid(n)))?.state
        assert.equal(state, ['committed', 'rolled_back', 'expired'][won[0]!])
        assert.equal((await find(store, n)).length, state === 'committed' ? 1 : 0)
      }
    })

    test('a long list that is on its way when its transaction ends is whole or absent', async (t) => {
      const store = await opened(t, open)
      for (const n of range(0, 8)) {
        await succeed(store, TENANT, [begin(n)])
        const tokens = range(n * 1000, n * 1000 + 600).map((it) => token(it))
        const list = store.commit(TENANT, [enlist(n), insert(...tokens)])
        for (const it of range(0, n)) await store.commit(OTHER, [answer(n * 100 + it)])
        await succeed(store, TENANT, [end(n, 'committed')])
        const outcome = await list
        const found = await store.tokens.find(
          TENANT,
          tokens.map((it) => it.id),
        )
        assert.equal(found.length, outcome === null ? 600 : 0)
        if (outcome !== null) await succeed(store, TENANT, [insert(...tokens)])
      }
    })
  })
}

async function find(store: Store, ...numbers: number[]): Promise<StoredToken[]> {
  return await store.tokens.find(TENANT, numbers.map(uuid))
}

async function duplicateOf(
  store: Store,
  fingerprint: string,
  within?: string,
): Promise<FoundToken | null> {
  return await store.tokens.findByFingerprint(TENANT, 'card', fingerprint, NOW, within)
}

async function sweepAll(store: Store, now: number): Promise<void> {
  while (await store.sweep(now));
}
