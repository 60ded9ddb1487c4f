import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test, type TestContext } from 'node:test'
import { KiB, MiB } from '../../../base/limits.ts'
import {
  NOW,
  TENANT,
  begin,
  end,
  enlist,
  everything,
  insert,
  range,
  stored,
  succeed,
  token,
  update,
  uuid,
} from '../../../ports/store-kit.contract.ts'
import { freshFolder, openStore } from '../../../../test/kit/sqlite-kit.ts'
import type { SqliteStore } from './store.ts'

/** Too long for two in one step, which still takes short rows with it. */
const LONG = new Uint8Array(5 * MiB)

describe('of what is long, a few rows at a time', () => {
  test('expire', async (t) => {
    const { store, left } = await opened(t)
    for (const n of range(0, 5)) {
      await succeed(store, TENANT, [insert(token(n, { data: LONG, expiresAt: NOW }))])
    }
    await succeed(store, TENANT, [
      insert(...range(10, 40).map((n) => token(n, { expiresAt: NOW }))),
    ])
    assert.deepEqual(await sweeps(store, () => left('tokens')), [34, 33, 32, 31, 0])
  })

  test('are forgotten of answers', async (t) => {
    const { store, left } = await opened(t)
    for (const n of range(0, 5)) {
      const answer = { ...stored(n), body: LONG, expiresAt: NOW }
      await succeed(store, TENANT, [{ kind: 'remember-answer', answer, now: NOW - 1 }])
    }
    assert.deepEqual(await sweeps(store, () => left('answers')), [4, 3, 2, 1, 0])
  })

  test('go with a transaction that is rolled back, and after it', async (t) => {
    const { store, left } = await opened(t)
    await succeed(store, TENANT, [begin(7)])
    for (const n of range(0, 5)) {
      await succeed(store, TENANT, [enlist(7), insert(token(n, { data: LONG }))])
    }
    // Enough tokens for a long list, whose rows are removed separately.
    const list = range(1000, 1600).map((n) => (n < 1005 ? token(n, { data: LONG }) : token(n)))
    await succeed(store, TENANT, [enlist(7), insert(...list)])
    await succeed(store, TENANT, [end(7, 'rolled_back')])
    assert.equal(left('tokens'), 604)
    const steps = await sweeps(store, () => left('tokens'))
    assert.deepEqual(steps.slice(0, 9), [603, 602, 601, 600, 599, 598, 597, 596, 532])
    assert.equal(steps.at(-1), 0)
  })

  test('wait no longer for a transaction that is rolled back, and lock no other out', async (t) => {
    const { store, left } = await opened(t)
    const tokens = range(0, 3).map((n) => token(n))
    await succeed(store, TENANT, [insert(...tokens), begin(7), begin(8)])
    for (const it of tokens) await succeed(store, TENANT, [enlist(7), update(it, { data: LONG })])
    await succeed(store, TENANT, [end(7, 'rolled_back')])
    assert.equal(left('pending'), 2)
    await succeed(store, TENANT, [update(tokens[1]!)])
    await succeed(store, TENANT, [enlist(8), update(tokens[2]!)])
    assert.equal(left('pending'), 1)
    await sweeps(store, () => left('pending'))
    await succeed(store, TENANT, [end(8, 'committed')])
    for (const [n, revision] of [0, 1, 1].entries()) {
      const [found] = await store.tokens.find(TENANT, [uuid(n)])
      assert.equal(found!.revision, revision)
    }
    assert.equal(left('pending'), 0)
  })

  test('are moved at the end of a transaction, and that is not done together with anything else', async (t) => {
    const { store } = await opened(t)
    const { counts } = store.activity.batchSize
    const flushes = (): number => counts.reduce((sum, it) => sum + it)
    // Three long ends after a short commit already waiting, or all in one batch.
    for (const [as, data, together] of [
      ['committed', new Uint8Array(MiB), 4],
      ['committed', new Uint8Array(KiB), 1],
      ['rolled_back', new Uint8Array(2 * MiB), 4],
      ['rolled_back', new Uint8Array(2 * KiB), 1],
    ] as const) {
      const made = range(0, 3).map((n) => token(n + data.length))
      await succeed(store, TENANT, [insert(...made)])
      for (const [n, it] of made.entries()) {
        await succeed(store, TENANT, [begin(n + data.length)])
        await succeed(store, TENANT, [enlist(n + data.length), update(it, { data })])
      }
      const before = flushes()
      const short = store.commit(TENANT, [insert(token(9 + data.length))])
      const ends = made.map((_, n) => store.commit(TENANT, [end(n + data.length, as)]))
      assert.deepEqual(await Promise.all([short, ...ends]), [null, null, null, null])
      assert.equal(flushes() - before, together)
    }
  })

  test('are cleared of a tenant that is deleted', async (t) => {
    const { store, left } = await opened(t)
    await succeed(store, uuid(1), everything(1))
    for (const n of range(2, 7)) await succeed(store, uuid(1), [insert(token(n, { data: LONG }))])
    await succeed(store, uuid(1), [{ kind: 'delete-tenant', at: NOW }])
    const counts: number[] = []
    while (left('tokens') > 0) {
      await succeed(store, uuid(1), [{ kind: 'clear-tenant', deletedBefore: NOW }])
      counts.push(left('tokens'))
    }
    assert.deepEqual(counts, [4, 3, 2, 1, 0])
  })
})

async function opened(
  t: TestContext,
): Promise<{ store: SqliteStore; left: (table: string) => number }> {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  const db = new DatabaseSync(join(folder, 'symbolon.db'), { readOnly: true })
  t.after(() => db.close())
  const left = (table: string): number => {
    const row = db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()!
    return Number(row['rows'])
  }
  return { store, left }
}

/** Sweeps until nothing is due; returns the rows left after each chunk that removed something. */
async function sweeps(store: SqliteStore, left: () => number): Promise<number[]> {
  const counts: number[] = []
  for (let before = left(); await store.sweep(NOW); before = left()) {
    if (left() !== before) counts.push(left())
  }
  return counts
}
