import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PARKED_MAX } from '../base/limits.ts'
import { RECORD_BEGIN, chainHash, decodeEntry, type RecordEntry } from './record.ts'
import type { Change } from './change.ts'
import type { Store } from './store.ts'
import {
  NOW,
  OTHER,
  TENANT,
  application,
  entry,
  everything,
  insert,
  opened,
  range,
  succeed,
  token,
  uuid,
  type Open,
} from './store-kit.contract.ts'

export function recordContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: record`, () => {
    test('entries come back exactly, numbered from 1 and chained, in each tenant for itself', async (t) => {
      const store = await opened(t, open)
      const entries = [
        entry(1),
        entry(2, { entityIds: [] }),
        entry(3, { entityIds: range(0, 40).map(uuid) }),
        entry(4, { traceId: 'traçe\n🙂', entityIds: ['a name', uuid(4), ''] }),
        entry(5, { allowed: false, changed: false, shown: 'mask', replayed: true, permission: '' }),
        entry(6, { entityType: 'log', operation: 'read', shown: 'reveal' }),
      ]
      await succeed(store, TENANT, [append(entries[0]!)])
      await succeed(store, OTHER, [append(entry(99))])
      await succeed(store, TENANT, [append(...entries.slice(1))])
      const rows = await store.record.rowsAfter(TENANT, 0, 100)
      assert.deepEqual(
        rows.map((it) => decodeEntry(it.entry)),
        entries,
      )
      assert.deepEqual(
        rows.map(({ number, listed }) => [number, listed]),
        [
          [1, 1],
          [2, 2],
          [3, 42],
          [4, 45],
          [5, 46],
          [6, 46],
        ],
      )
      let before = RECORD_BEGIN.hash
      for (const row of rows) {
        assert.deepEqual(Buffer.from(row.hash), chainHash(before, row, row.entry))
        before = row.hash
      }
      const { number, listed, hash } = rows.at(-1)!
      const state = { removed: RECORD_BEGIN, last: { number, listed, hash }, seal: null }
      assert.deepEqual(await store.record.state(TENANT), state)
      assert.deepEqual(await timesOf(store, OTHER), [NOW + 99])
      assert.equal(await store.record.state(uuid(7)), null)
      assert.deepEqual(await store.record.rowsAfter(uuid(7), 0, 9), [])
    })

    test('entries are read in both directions, so many at a time', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(...range(1, 31).map((n) => entry(n)))])
      const numbers = async (rows: ReturnType<Store['record']['rowsAfter']>) =>
        (await rows).map((it) => it.number)
      assert.deepEqual(await numbers(store.record.rowsAfter(TENANT, 7, 3)), [8, 9, 10])
      assert.deepEqual(await numbers(store.record.rowsAfter(TENANT, 29, 3)), [30])
      assert.deepEqual(await numbers(store.record.rowsBefore(TENANT, 7, 3)), [6, 5, 4])
      assert.deepEqual(await numbers(store.record.rowsBefore(TENANT, 2, 3)), [1])
      assert.deepEqual(await numbers(store.record.rowsBefore(TENANT, 1, 3)), [])
    })

    test('entries that were committed together are read and removed one by one all the same', async (t) => {
      const store = await opened(t, open)
      const crowds = [1, 4, 1, 2, 7, 3]
      let number = 0
      for (const crowd of crowds) {
        const entries = range(0, crowd).map(() => entry(++number))
        await Promise.all([
          succeed(store, TENANT, [append(...entries)]),
          succeed(store, OTHER, [append(entry(number))]),
        ])
      }
      const all = await store.record.rowsAfter(TENANT, 0, 100)
      assert.deepEqual(
        all.map((it) => [it.number, decodeEntry(it.entry).at]),
        range(1, number + 1).map((n) => [n, NOW + n]),
      )
      for (const removed of [RECORD_BEGIN, all[2]!, all[3]!, all[8]!, all[14]!, all[16]!]) {
        if (removed.number > 0) {
          const { number, listed, hash } = removed
          await succeed(store, TENANT, [{ kind: 'trim-record', removed: { number, listed, hash } }])
        }
        const left = all.slice(removed.number)
        for (const at of range(0, number + 3)) {
          for (const limit of [1, 2, 5, 100]) {
            const after = left.filter((it) => it.number > at).slice(0, limit)
            assert.deepEqual(await store.record.rowsAfter(TENANT, at, limit), after)
            const earlier = left.filter((it) => it.number < at).toReversed()
            const found = await store.record.rowsBefore(TENANT, at, limit)
            assert.deepEqual(found, earlier.slice(0, limit))
          }
        }
      }
      assert.equal((await store.record.rowsAfter(OTHER, 0, 100)).length, crowds.length)
    })

    test('a commit that is refused leaves no entry and no gap', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1)), append(entry(1))])
      const outcomes = await Promise.all([
        store.commit(TENANT, [append(entry(2)), insert(token(2))]),
        store.commit(TENANT, [append(entry(3)), insert(token(1))]),
        store.commit(TENANT, [
          append(entry(4)),
          { kind: 'update-application', application: application(9) },
        ]),
        store.commit(TENANT, [append(entry(5)), insert(token(5))]),
      ])
      assert.deepEqual(
        outcomes.map((it) => it?.kind ?? null),
        [null, 'token-id-taken', 'absent', null],
      )
      // Of two at a time nobody is promised to be first.
      const times = await timesOf(store, TENANT)
      assert.deepEqual(
        times.toSorted((a, b) => a - b),
        [NOW + 1, NOW + 2, NOW + 5],
      )
      assert.equal((await store.record.state(TENANT))?.last.number, 3)
    })

    test('a crowd of commits of several tenants is numbered without gaps', async (t) => {
      const store = await opened(t, open)
      await Promise.all(
        range(0, 300).map((n) =>
          store.commit(n % 3 === 0 ? OTHER : TENANT, [insert(token(n)), append(entry(n))]),
        ),
      )
      for (const [tenantId, count] of [
        [OTHER, 100],
        [TENANT, 200],
      ] as const) {
        const rows = await store.record.rowsAfter(tenantId, 0, 1000)
        assert.deepEqual(
          rows.map((it) => it.number),
          range(1, count + 1),
        )
        assert.equal(new Set(rows.map((it) => decodeEntry(it.entry).at)).size, count)
        assert.equal((await store.record.state(tenantId))?.last.number, count)
      }
    })

    test('the entry of a long list is there when the list is, and not before', async (t) => {
      const store = await opened(t, open)
      const tokens = range(0, 1000).map((n) => token(n))
      await succeed(store, TENANT, [insert(...tokens), append(entry(1))])
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 1])
      const refused = await store.commit(TENANT, [
        insert(...range(2000, 2500).map((n) => token(n)), token(1)),
        append(entry(2)),
      ])
      assert.equal(refused?.kind, 'token-id-taken')
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 1])
    })

    test('what is parked for a transaction is appended with it, in order, or forgotten', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(entry(1)), park('a', entry(2), entry(3))])
      await succeed(store, TENANT, [park('b', entry(4))])
      await succeed(store, TENANT, [park('a', entry(5)), append(entry(6))])
      await succeed(store, OTHER, [park('a', entry(7))])
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 1, NOW + 6])

      await succeed(store, TENANT, [{ kind: 'drop-parked-record', transactionId: 'b' }])
      const commit: Change = { kind: 'append-parked-record', transactionId: 'a' }
      await succeed(store, TENANT, [commit, append(entry(8))])
      const expected = [1, 6, 2, 3, 5, 8].map((n) => NOW + n)
      assert.deepEqual(await timesOf(store, TENANT), expected)

      await succeed(store, TENANT, [
        commit,
        { kind: 'append-parked-record', transactionId: 'b' },
        { kind: 'append-parked-record', transactionId: 'never' },
      ])
      assert.deepEqual(await timesOf(store, TENANT), expected)
      assert.equal(await store.record.state(OTHER), null)
      await succeed(store, OTHER, [commit])
      assert.deepEqual(await timesOf(store, OTHER), [NOW + 7])
    })

    test('no more is parked for a transaction than may wait for it, and that can be appended', async (t) => {
      const store = await opened(t, open)
      const [most, full] = [range(0, PARKED_MAX), { kind: 'transaction-full' }]
      await succeed(store, TENANT, [park('a', ...most.slice(1).map((n) => entry(n)))])
      assert.deepEqual(await store.commit(TENANT, [park('a', entry(1), entry(2))]), full)
      await succeed(store, TENANT, [park('a', entry(PARKED_MAX))])
      const refused = [park('a', entry(1)), insert(token(1))]
      assert.deepEqual(await store.commit(TENANT, refused), full)
      assert.deepEqual(await store.tokens.find(TENANT, [uuid(1)]), [])
      await succeed(store, TENANT, [park('b', entry(1))])
      await succeed(store, OTHER, [park('a', entry(1))])
      await succeed(store, TENANT, [{ kind: 'append-parked-record', transactionId: 'a' }])
      assert.equal((await store.record.state(TENANT))?.last.number, PARKED_MAX)
      await succeed(store, TENANT, [park('a', entry(1))])
    })

    test('parked entries stay parked when the commit that would append them is refused', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(token(1)), park('a', entry(1))])
      const commit: Change = { kind: 'append-parked-record', transactionId: 'a' }
      assert.equal((await store.commit(TENANT, [commit, insert(token(1))]))?.kind, 'token-id-taken')
      assert.deepEqual(await timesOf(store, TENANT), [])
      await succeed(store, TENANT, [commit])
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 1])
    })

    test('the oldest entries can be removed, and the chain goes on', async (t) => {
      const store = await opened(t, open)
      for (const tenantId of [TENANT, OTHER]) {
        await succeed(store, tenantId, [append(...range(1, 6).map((n) => entry(n)))])
      }
      const { number, listed, hash } = (await store.record.rowsAfter(TENANT, 2, 1))[0]!
      const removed = { number, listed, hash }
      await succeed(store, TENANT, [{ kind: 'trim-record', removed }])
      assert.deepEqual((await store.record.state(TENANT))?.removed, removed)
      assert.deepEqual(await timesOf(store, TENANT), [NOW + 4, NOW + 5])
      assert.equal((await timesOf(store, OTHER)).length, 5)

      const last = (await store.record.state(TENANT))!.last
      await succeed(store, TENANT, [{ kind: 'trim-record', removed: last }])
      assert.deepEqual(await store.record.state(TENANT), { removed: last, last, seal: null })
      await succeed(store, TENANT, [append(entry(6))])
      const [row] = await store.record.rowsAfter(TENANT, 0, 9)
      assert.equal(row?.number, 6)
      assert.deepEqual(Buffer.from(row.hash), chainHash(last.hash, row, row.entry))
    })

    test('a seal is kept exactly, and says who is unsealed', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(entry(1))])
      await succeed(store, OTHER, [append(entry(1))])
      const { removed, last } = (await store.record.state(TENANT))!
      const seal = { removed, last, at: NOW, proof: Uint8Array.of(1, 2, 255) }
      await succeed(store, TENANT, [{ kind: 'seal-record', seal }])
      assert.deepEqual((await store.record.state(TENANT))?.seal, seal)
      assert.deepEqual((await store.record.tenantIds('all')).toSorted(), [TENANT, OTHER].toSorted())
      assert.deepEqual(await store.record.tenantIds('unsealed'), [OTHER])
      await succeed(store, TENANT, [append(entry(2))])
      assert.equal((await store.record.tenantIds('unsealed')).length, 2)
    })

    test('a seal that comes after entries were removed which it does not know of is not kept', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [append(...range(1, 4).map((n) => entry(n)))])
      const { removed, last } = (await store.record.state(TENANT))!
      const late = { removed, last, at: NOW, proof: Uint8Array.of(1) }
      const seal = { ...late, removed: last, proof: Uint8Array.of(2) }
      await succeed(store, TENANT, [
        { kind: 'trim-record', removed: last },
        { kind: 'seal-record', seal },
      ])
      await succeed(store, TENANT, [{ kind: 'seal-record', seal: late }])
      assert.deepEqual(await store.record.state(TENANT), { removed: last, last, seal })
    })

    test('ids() names every tenant', async (t) => {
      const store = await opened(t, open)
      assert.deepEqual(await store.tenants.ids(), [])
      await succeed(store, TENANT, everything(1))
      assert.deepEqual(await store.tenants.ids(), [uuid(1)])
    })
  })
}

function append(...entries: readonly RecordEntry[]): Change {
  return { kind: 'append-record', entries }
}

function park(transactionId: string, ...entries: readonly RecordEntry[]): Change {
  return { kind: 'park-record', transactionId, entries }
}

/** When each entry says it was made: what entries of a test differ in. */
async function timesOf(store: Store, tenantId: string): Promise<number[]> {
  const rows = await store.record.rowsAfter(tenantId, 0, 1000)
  return rows.map((it) => decodeEntry(it.entry).at)
}
