import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  ENVELOPE_BYTES_AT_ONCE,
  INLINE_DATA_BYTES_MAX,
  MiB,
  PENDING_BYTES_MAX,
  PENDING_LIGHT_BYTES_MAX,
} from '../base/limits.ts'
import type { Conflict } from './change.ts'
import type { Envelopes, Store } from './store.ts'
import type { EnvelopeCursor, FoundToken, StoredToken } from './stored.ts'
import { ANY_TOKEN, type TokenCondition } from './token-query.ts'
import { TooMuchData } from './too-much-data.ts'
import {
  NOW,
  OTHER,
  TENANT,
  begin,
  end,
  enlist,
  insert,
  opened,
  range,
  remove,
  succeed,
  token,
  update,
  type Open,
  uuid,
} from './store-kit.contract.ts'

/** The contract for how much token data a store reads per call. */
export function dataContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: data`, () => {
    test('find() reads as much data as it may, and no byte more', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [begin(7), insert(sized(1, 100), sized(2, 200), sized(3, 300))])
      for (const within of [undefined, uuid(7)]) {
        for (const numbers of [[1], [3], [1, 2], [3, 1], [1, 2, 3], [3, 3, 2, 1]]) {
          const ids = numbers.map(uuid)
          const all = [...new Set(numbers)].reduce((sum, n) => sum + n * 100, 0)
          const found = await store.tokens.find(TENANT, ids, within, all)
          assert.equal(
            found.reduce((sum, { data }) => sum + data.length, 0),
            all,
          )
          const more = store.tokens.find(TENANT, ids, within, all - 1)
          await assert.rejects(more, TooMuchData, `${ids.join()} within ${all - 1}`)
        }
      }
    })

    test('who asks at the same time for more of the same token gets it', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [insert(sized(1, 100))])
      const asked = [99, 100, 99, 1000].map((most) =>
        store.tokens.find(TENANT, [uuid(1)], undefined, most),
      )
      const outcomes = await Promise.allSettled(asked)
      assert.deepEqual(
        outcomes.map((it) => it.status),
        ['rejected', 'fulfilled', 'rejected', 'fulfilled'],
      )
      assert.deepEqual(await asked[1], [sized(1, 100)])
      assert.deepEqual(await asked[3], [sized(1, 100)])
    })

    test('find() sees the data that a transaction gave a token, and counts that', async (t) => {
      const store = await opened(t, open)
      const [short, long] = [sized(1, 10), sized(2, 1000)]
      await succeed(store, TENANT, [begin(7), insert(short, long)])
      const changes = [update(short, { data: filled(1000) }), update(long, { data: filled(10) })]
      for (const it of changes) await succeed(store, TENANT, [enlist(7), it])
      const find = (n: number, within?: string): Promise<StoredToken[]> =>
        store.tokens.find(TENANT, [uuid(n)], within, 100)
      assert.deepEqual(await find(1), [short])
      await assert.rejects(find(1, uuid(7)), TooMuchData)
      await assert.rejects(find(2), TooMuchData)
      assert.equal((await find(2, uuid(7)))[0]!.data.length, 10)
    })

    test('what is looked up, by id, by fingerprint or in a list, has its data only if that is short', async (t) => {
      const store = await opened(t, open)
      const short = { ...sized(1, INLINE_DATA_BYTES_MAX), fingerprint: 'f 1' }
      const long = { ...sized(2, INLINE_DATA_BYTES_MAX + 1), fingerprint: 'f 2' }
      const bare = { ...long, data: null }
      await succeed(store, TENANT, [begin(7), insert(short, long)])
      const [one, two] = [uuid(1), uuid(2)]
      for (const within of [undefined, uuid(7)]) {
        assert.deepEqual(await store.tokens.lookUp(TENANT, [one], within), [short])
        assert.deepEqual(await store.tokens.lookUp(TENANT, [two], within), [bare])
        const both = await store.tokens.lookUp(TENANT, [two, 'none', one, two], within)
        assert.deepEqual(
          both.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
          [short, bare],
        )
        assert.deepEqual(await store.tokens.lookUp(TENANT, [], within), [])
        assert.deepEqual(await store.tokens.lookUp(OTHER, [one, two], within), [])
        const duplicates = ['f 1', 'f 2'].map((it) =>
          store.tokens.findByFingerprint(TENANT, 'card', it, NOW, within),
        )
        assert.deepEqual(await Promise.all(duplicates), [short, bare])
      }
      for (const where of [ANY_TOKEN, BY_METADATA, BY_TYPE]) {
        for (const read of pagesOf(store, where)) assert.deepEqual(await read(2), [bare, short])
      }
    })

    test('who looks a token up while others read its data gets none of it', async (t) => {
      const store = await opened(t, open)
      const long = sized(1, INLINE_DATA_BYTES_MAX + 1)
      await succeed(store, TENANT, [insert(long)])
      const ids = [long.id]
      const asked = [
        store.tokens.find(TENANT, ids),
        store.tokens.lookUp(TENANT, ids),
        store.tokens.find(TENANT, ids, undefined, long.data.length),
      ]
      assert.deepEqual(await Promise.all(asked), [[long], [{ ...long, data: null }], [long]])
    })

    test('lookUp() sees the data that a transaction gave a token', async (t) => {
      const store = await opened(t, open)
      const [short, long] = [sized(1, 10), sized(2, 10_000)]
      await succeed(store, TENANT, [begin(7), insert(short, long)])
      const changes = [update(short, { data: filled(10_000) }), update(long, { data: filled(10) })]
      for (const it of changes) await succeed(store, TENANT, [enlist(7), it])
      const lengths = async (within?: string): Promise<unknown[]> => {
        const found = await store.tokens.lookUp(TENANT, [uuid(1), uuid(2)], within)
        const sorted = found.toSorted((a, b) => (a.id < b.id ? -1 : 1))
        return sorted.map((it) => [it.revision, it.data?.length])
      }
      assert.deepEqual(await lengths(), [
        [0, 10],
        [0, undefined],
      ])
      assert.deepEqual(await lengths(uuid(7)), [
        [1, undefined],
        [1, 10],
      ])
    })

    test('a token that was looked up without its data can be deleted', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, [begin(7), insert(sized(1, 10_000), sized(2, 10_000))])
      const found = await store.tokens.lookUp(TENANT, [uuid(1), uuid(2)])
      await succeed(store, TENANT, [remove(found.find((it) => it.id === uuid(1))!)])
      await succeed(store, TENANT, [enlist(7), remove(found.find((it) => it.id === uuid(2))!)])
      assert.deepEqual(await store.tokens.known(TENANT, [uuid(1), uuid(2)]), [uuid(2)])
      await succeed(store, TENANT, [end(7, 'committed')])
      assert.deepEqual(await store.tokens.known(TENANT, [uuid(1), uuid(2)]), [])
    })

    test('known() names what find() would find, however much data it has', async (t) => {
      const store = await opened(t, open)
      const named = { ...sized(1, 10), id: 'an alias' }
      const tokens = [named, sized(2, 10 * MiB), sized(3, 10 * MiB), sized(4, 10 * MiB)]
      await succeed(store, TENANT, [begin(7), begin(8)])
      for (const it of [...tokens, sized(5, 10 * MiB)]) await succeed(store, TENANT, [insert(it)])
      await succeed(store, TENANT, [enlist(7), insert(sized(6, 10)), remove(sized(5, 10 * MiB))])
      const ids = ['an alias', 'no such', ...range(1, 8).map(uuid), uuid(2)]
      const known = async (tenant: string, within?: string): Promise<string[]> =>
        (await store.tokens.known(tenant, ids, within)).toSorted()
      assert.deepEqual(await known(TENANT), [...range(2, 6).map(uuid), 'an alias'])
      assert.deepEqual(await known(TENANT, uuid(7)), [...[2, 3, 4, 6].map(uuid), 'an alias'])
      assert.deepEqual(await known(TENANT, uuid(8)), await known(TENANT))
      assert.deepEqual(await known(OTHER), [])
      assert.deepEqual(await store.tokens.known(TENANT, []), [])
      await assert.rejects(store.tokens.find(TENANT, ids), TooMuchData)
      await succeed(store, TENANT, [end(7, 'rolled_back')])
      assert.deepEqual(await known(TENANT), [...range(2, 6).map(uuid), 'an alias'])
    })

    test('a page is a page, however much data its tokens have', async (t) => {
      const store = await opened(t, open)
      for (const n of range(1, 6)) await succeed(store, TENANT, [insert(sized(n, 8 * MiB))])
      for (const where of [ANY_TOKEN, BY_METADATA, BY_TYPE]) {
        for (const read of pagesOf(store, where)) {
          assert.deepEqual(
            (await read(5)).map((it) => [it.id, it.data]),
            [5, 4, 3, 2, 1].map((n) => [uuid(n), null]),
          )
        }
      }
    })

    test('envelopes() ends a stretch with the row with which it is enough, and leaves none out', async (t) => {
      const store = await opened(t, open)
      const part = ENVELOPE_BYTES_AT_ONCE / 2
      const tokens = [sized(1, 10), ...range(2, 5).map((n) => sized(n, part)), sized(5, 2 * part)]
      for (const it of [...tokens, sized(6, 10)]) await succeed(store, TENANT, [insert(it)])
      const stretches: string[][] = []
      let after: EnvelopeCursor | null = null
      do {
        const stretch = { dataKeyId: Uint8Array.of(0xff), after, limit: 64 }
        const { found, next }: Envelopes = await store.tenants.envelopes(TENANT, stretch)
        stretches.push(found.map((it) => it.row))
        after = next
      } while (after?.table === 'tokens')
      assert.deepEqual(stretches, [[1, 2, 3].map(uuid), [4, 5].map(uuid), [6].map(uuid)])
    })

    test('a transaction waits to change so much data and no more, and small changes are not weighed', async (t) => {
      const store = await opened(t, open)
      const part = PENDING_BYTES_MAX / 8
      const long = range(0, 8).map((n) => bare(n, part, n === 0 ? NOW + 1 : null))
      const short = range(10, 14).map((n) => bare(n, 10))
      await succeed(store, TENANT, [begin(7), begin(8), insert(...short)])
      for (const it of long) await succeed(store, TENANT, [insert(it)])
      const change = (it: StoredToken, data: Uint8Array, by = 7): Promise<Conflict | null> =>
        store.commit(TENANT, [enlist(by), update(it, { data })])
      // The data before the change counts, and the data after it.
      for (const it of long.slice(0, 3)) assert.equal(await change(it, filled(part)), null)
      assert.equal(await store.commit(TENANT, [enlist(7), remove(long[3]!)]), null)
      const spare = part - 10
      assert.deepEqual(await change(short[0]!, filled(spare + 1)), FULL)
      assert.equal(await change(short[0]!, filled(spare)), null)
      const full = [
        () => change(short[1]!, filled(PENDING_LIGHT_BYTES_MAX)),
        () => change(long[4]!, filled(1)),
        () => store.commit(TENANT, [enlist(7), remove(long[4]!)]),
      ]
      for (const it of full) assert.deepEqual(await it(), FULL)
      assert.equal(await change(short[1]!, filled(PENDING_LIGHT_BYTES_MAX - 10)), null)
      assert.equal(await store.commit(TENANT, [enlist(7), remove(short[2]!)]), null)
      // A pending change whose token is gone still counts.
      await store.sweep(NOW + 1)
      assert.deepEqual(await store.tokens.find(TENANT, [uuid(0)]), [])
      assert.deepEqual(await change(long[5]!, filled(1)), FULL)
      // Tokens that it creates are not counted, and neither is another transaction.
      assert.equal(await store.commit(TENANT, [enlist(7), insert(sized(20, part))]), null)
      assert.equal(await change(long[4]!, filled(part), 8), null)
      await succeed(store, TENANT, [end(7, 'committed')])
      const found = await store.tokens.find(TENANT, [short[1]!.id])
      assert.equal(found[0]!.data.length, PENDING_LIGHT_BYTES_MAX - 10)
    })
  })
}

const FULL: Conflict = { kind: 'transaction-full' }

const BY_METADATA: TokenCondition = { kind: 'metadata', key: 'k', value: 'v', exact: true }
const BY_TYPE: TokenCondition = { kind: 'type', type: 'card' }

function pagesOf(
  { tokens }: Store,
  where: TokenCondition,
): ((size: number) => Promise<readonly FoundToken[]>)[] {
  const query = { where, within: null, now: NOW }
  return [
    async (size) => (await tokens.list(TENANT, query, { page: 1, size })).items,
    (size) => tokens.listAfter(TENANT, query, { after: null, size }),
  ]
}

function sized(n: number, length: number): StoredToken {
  return token(n, { data: filled(length), metadata: { k: 'v' } })
}

/** A token with nothing but data. */
function bare(n: number, length: number, expiresAt: number | null = null): StoredToken {
  return token(n, { data: filled(length), metadata: null, details: null, expiresAt })
}

function filled(length: number): Uint8Array {
  return new Uint8Array(length).fill(length)
}
