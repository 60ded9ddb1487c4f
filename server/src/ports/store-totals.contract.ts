import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from './store.ts'
import type { FoundToken } from './stored.ts'
import { ANY_TOKEN, type TokenQuery } from './token-query.ts'
import {
  NOW,
  OTHER,
  TENANT,
  TRANSACTION_MS,
  begin,
  end,
  enlist,
  everything,
  insert,
  opened,
  range,
  remove,
  succeed,
  token,
  update,
  uuid,
  type Open,
} from './store-kit.contract.ts'

const ENDS = ['committed', 'rolled_back', 'expired'] as const

/** The contract for totals: they are kept in several ways, and every change of tokens must update each. */
export function totalsContract(name: string, open: Open): void {
  describe(`Store contract: ${name}: totals`, () => {
    for (const end of ENDS) {
      test(`lists, sums and tokens agree while transactions are open, and when all are ${end}`, async (t) => {
        const store = await opened(t, open)
        await succeed(store, TENANT, [insert(...range(0, 40).map((n) => token(n)))])
        for (const n of range(0, 6)) await transact(store, n)
        await agree(store, NOW, 40)
        await Promise.all(range(0, 6).map((n) => endOf(store, n, end)))
        // Each made 302 tokens and left 301 of them, deleted an existing one and changed another.
        const left = end === 'committed' ? 40 + 6 * (301 - 1) : 40
        const now = end === 'expired' ? NOW + TRANSACTION_MS : NOW
        await agree(store, now, left)
        while (await store.sweep(now));
        await agree(store, now, left)
      })
    }

    test('they agree when tokens and the ends of their transactions come in one go', async (t) => {
      const store = await opened(t, open)
      for (const round of range(0, 10)) {
        const numbers = range(round * 10, round * 10 + 9)
        await Promise.all(numbers.map((n) => store.commit(TENANT, [begin(n)])))
        const commits = numbers.flatMap((n) => [
          store.commit(TENANT, [enlist(n), insert(token(n * 10))]),
          store.commit(TENANT, [enlist(n), insert(token(n * 10 + 1, { id: `name ${n}` }))]),
          endOf(store, n, ENDS[n % 3]!),
          store.commit(TENANT, [insert(token(n * 10 + 2))]),
          store.commit(TENANT, [enlist(n), insert(token(n * 10 + 3))]),
        ])
        await Promise.all([...commits, store.sweep(NOW)])
      }
      const made = range(0, 1_000).map(uuid)
      const found = await store.tokens.find(TENANT, [...made, ...range(0, 100).map(named)])
      await agree(store, NOW, found.length)
      const changes = found.filter((_, at) => at % 2 === 0).map((it) => remove(it))
      for (const it of changes) await succeed(store, TENANT, [it])
      await agree(store, NOW, found.length - changes.length)
    })

    test('a deleted tenant is cleared while its transactions and long lists are on their way', async (t) => {
      const store = await opened(t, open)
      await succeed(store, TENANT, everything(1))
      await succeed(store, OTHER, [insert(token(0))])
      await succeed(store, uuid(1), range(0, 90).map(begin))
      const lists = [0, 20, 40, 60, 80, 85, 89].map((n) => {
        const tokens = range((n + 1) * 1000, (n + 1) * 1000 + 300).map((it) =>
          token(it, { indexes: [hash(it)] }),
        )
        return store.commit(uuid(1), [enlist(n), insert(...tokens)])
      })
      await succeed(store, uuid(1), [{ kind: 'delete-tenant', at: NOW }])
      const clear = async (deletedBefore: number): Promise<void> => {
        await succeed(store, uuid(1), [{ kind: 'clear-tenant', deletedBefore }])
      }
      const isEmpty = async () => (await store.tenants.deleted())[0]?.empty
      const state = { over: false }
      const outcomes = Promise.all(lists).finally(() => (state.over = true))
      while (!state.over) await clear(NOW)
      for (const it of await outcomes) assert.ok(it === null || it.kind === 'transaction-not-open')
      for (let n = 0; (await isEmpty()) === false; n++) {
        assert.ok(n < 1_000, 'it makes no progress')
        await clear(NOW)
      }
      while (await store.sweep(NOW + TRANSACTION_MS));
      await clear(NOW + 1)
      assert.deepEqual(await store.tenants.deleted(), [])
      await agree(store, NOW, 1, OTHER)
      await agree(store, NOW, 0, uuid(1))
    })
  })
}

/** Makes 302 tokens in the transaction `n`, deletes one of them and an existing one, changes another. */
async function transact(store: Store, n: number): Promise<void> {
  const id = uuid(n)
  const first = (n + 1) * 1_000
  await succeed(store, TENANT, [begin(n)])
  const own = [token(first), token(first + 1, { id: `name ${n}` })]
  await Promise.all([
    succeed(store, TENANT, [enlist(n), insert(...own)]),
    succeed(store, TENANT, [
      enlist(n),
      insert(...range(first + 2, first + 302).map((it) => token(it))),
    ]),
  ])
  const [made] = await store.tokens.find(TENANT, [uuid(first)], id)
  const [there, other] = await store.tokens.find(TENANT, [uuid(n), uuid(n + 20)])
  await succeed(store, TENANT, [enlist(n), remove(made!)])
  await succeed(store, TENANT, [enlist(n), remove(there!)])
  const later = { modifiedAt: NOW + 5, modifiedBy: uuid(9) }
  await succeed(store, TENANT, [enlist(n), update(other!, later)])
}

async function endOf(store: Store, n: number, as: (typeof ENDS)[number]): Promise<void> {
  const now = as === 'expired' ? NOW + TRANSACTION_MS : NOW
  await succeed(store, TENANT, [end(n, as, now)])
}

/** Checks that all ways to count a tenant's live tokens give `count`, as does a walk over all of them. */
async function agree(store: Store, now: number, count: number, tenantId = TENANT): Promise<void> {
  const everybody: TokenQuery = { where: ANY_TOKEN, within: null, now }
  const typed: TokenQuery = { ...everybody, where: { kind: 'type', type: 'card' } }
  const walked = await walk(store, tenantId, everybody)
  const usage = await store.tokens.usage(tenantId, { now, since: 0 })
  assert.deepEqual(
    {
      walked: walked.length,
      listed: (await store.tokens.list(tenantId, everybody, { page: 1, size: 1 })).total,
      typed: (await store.tokens.list(tenantId, typed, { page: 1, size: 1 })).total,
      counted: usage.reduce((sum, it) => sum + it.count, 0),
      active: usage.reduce((sum, it) => sum + it.active, 0),
    },
    { walked: count, listed: count, typed: count, counted: count, active: count },
  )
}

async function walk(store: Store, tenantId: string, query: TokenQuery): Promise<FoundToken[]> {
  const found: FoundToken[] = []
  for (;;) {
    const after = found.at(-1)?.internalId ?? null
    const next = await store.tokens.listAfter(tenantId, query, { after, size: 100 })
    if (next.length === 0) return found
    found.push(...next)
  }
}

function named(n: number): string {
  return `name ${n}`
}

function hash(n: number): Uint8Array {
  return new Uint8Array(32).fill(n % 251)
}
