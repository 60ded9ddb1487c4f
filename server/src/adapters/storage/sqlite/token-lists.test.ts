import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { ANY_TOKEN, type TokenCondition } from '../../../ports/token-query.ts'
import {
  TENANT,
  countIn,
  faultAt,
  freshFolder,
  idsNumbered,
  insertNumbered,
  openStore,
} from '../../../../test/kit/sqlite-kit.ts'

import { packId } from './ids.ts'
import type { SqliteStore } from './store.ts'

const NOT_CARDS: TokenCondition = { kind: 'not', of: { kind: 'type', type: 'card' } }

async function list(store: SqliteStore, where: TokenCondition, page = 1) {
  const query = { where, within: null, now: 0 }
  return await store.tokens.list(TENANT, query, { page, size: 10 })
}

/** Runs `work` and returns how often it yielded. */
async function yieldsDuring(work: () => Promise<unknown>): Promise<number> {
  const counting = { over: false, yields: 0 }
  const count = (): void => {
    counting.yields++
    if (!counting.over) setImmediate(count)
  }
  setImmediate(count)
  await work()
  counting.over = true
  return counting.yields
}

test('a broad question yields to others, a narrow one needs not', async (t) => {
  const store = await openStore(t, { folder: freshFolder(t) })
  for (let from = 0; from < 20_000; from += 1_000) {
    assert.equal(await store.commit(TENANT, [insertNumbered(from, from + 1_000)]), null)
  }
  const broad = await yieldsDuring(async () => {
    assert.equal((await list(store, NOT_CARDS)).total, 20_000)
  })
  assert.ok(broad >= 9, `others had ${broad} yields`)
  const hash = new Uint8Array(32).fill(7)
  for (const [where, total] of [
    [ANY_TOKEN, 20_000],
    [{ kind: 'index', hash: new Uint8Array(16) }, 0],
    [{ kind: 'fingerprint', fingerprint: 'f' }, 0],
    [{ kind: 'id', ids: idsNumbered(5, 6) }, 1],
    [{ kind: 'all', of: [NOT_CARDS, { kind: 'index', hash }] }, 79],
  ] as const) {
    const yields = await yieldsDuring(async () => {
      assert.equal((await list(store, where)).total, total)
    })
    assert.equal(yields, 0, where.kind)
  }
})

test('blocks know how many tokens there are, whatever became of them, and stay small', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  for (const [from, to] of [
    [0, 10],
    [5_000, 9_000],
    [100, 300],
    [301, 4_900],
    [20_000, 20_001],
    [10_000, 15_000],
  ] as const) {
    assert.equal(await store.commit(TENANT, [insertNumbered(from, to)]), null)
    // Refused in the middle of the list.
    const conflict = await store.commit(TENANT, [insertNumbered(Math.max(0, from - 3), to + 3)])
    assert.equal(conflict?.kind, 'token-id-taken')
  }
  // In one commit, out of order, and across all blocks.
  const scattered = [15_500, 50, 9_500, 51, 20_500, 4_950, 52, 9_501].map((n) => {
    return insertNumbered(n, n + 1)
  })
  assert.equal(await store.commit(TENANT, scattered), null)
  await store.close()
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const blocks = db
    .prepare(
      `SELECT sum(it.tokens) AS counted, (SELECT count(*) FROM tokens
         WHERE serial >= it.first AND serial < ifnull(
           (SELECT min(first) FROM token_blocks WHERE first > it.first), x'ffffffffffffffffffff')
       ) AS there
       FROM token_blocks AS it GROUP BY it.first`,
    )
    .all()
  assert.ok(blocks.length >= 7, `${blocks.length} blocks`)
  for (const { counted, there } of blocks) assert.equal(counted, there)
  for (const { there } of blocks) assert.ok(Number(there) < 2_048, `${String(there)} tokens`)
  assert.equal(
    blocks.reduce((sum, it) => sum + Number(it.there), 0),
    13_818,
  )
  db.exec('DELETE FROM tokens WHERE created_at % 2 = 0')
  db.close()
  const again = await openStore(t, { folder })
  const { total, items } = await list(again, ANY_TOKEN, 3)
  assert.equal(total, countIn(folder, 'tokens'))
  assert.deepEqual(
    items.map((it) => it.createdAt),
    [14_959, 14_957, 14_955, 14_953, 14_951, 14_949, 14_947, 14_945, 14_943, 14_941],
  )
})

test('what a killed commit left behind is not counted', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder, probe: faultAt('staged', 20, 10), onFault: () => {} })
  await assert.rejects(store.commit(TENANT, [insertNumbered(0, 5_000)]))
  await store.close()
  assert.notEqual(countIn(folder, 'tokens'), 0)
  const again = await openStore(t, { folder })
  assert.equal((await list(again, ANY_TOKEN)).total, 0)
  assert.equal(await again.commit(TENANT, [insertNumbered(0, 5_000)]), null)
  assert.equal((await list(again, ANY_TOKEN)).total, 5_000)
})

test('a database of before there were lists has everything in them', async (t) => {
  const folder = freshFolder(t)
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const first = new URL('./migrations/0001-lay-the-ground.sql', import.meta.url)
  db.exec(readFileSync(first, 'utf8'))
  db.exec('PRAGMA user_version = 1')
  const insert = db.prepare(
    `INSERT INTO tokens (tenant, serial, type, containers, data, metadata, fingerprint, created_by, created_at)
     VALUES (?, ?, 'token', '/a/', x'00', ?, ?, 'me', 0)`,
  )
  db.exec('BEGIN')
  for (const [n, id] of idsNumbered(0, 3_000).entries()) {
    const metadata = n % 1_000 === 0 ? JSON.stringify({ 'a "key"': 'ÄRGER' }) : null
    insert.run(packId(TENANT), packId(id), metadata, n % 1_500 === 0 ? 'f' : null)
  }
  db.exec('COMMIT')
  db.close()
  const store = await openStore(t, { folder })
  for (const [where, total] of [
    [ANY_TOKEN, 3_000],
    [{ kind: 'metadata', key: 'a "key"', value: 'ärger', exact: false }, 3],
    [{ kind: 'fingerprint', fingerprint: 'f' }, 2],
  ] as const) {
    assert.equal((await list(store, where)).total, total)
  }
  assert.deepEqual(
    (await list(store, ANY_TOKEN, 150)).items.map((it) => it.id),
    idsNumbered(1_500, 1_510).toReversed(),
  )
  assert.equal(countIn(folder, 'token_blocks'), 3)
})

test('tokens of transactions that ended in the batch that made them count once when a block is cut', async (t) => {
  const store = await openStore(t, { folder: freshFolder(t) })
  const now = 0
  let made = 0
  // From the newest down, so that all go to the oldest block; each round is one batch.
  for (let round = 9; round >= 0; round--) {
    const ids = idsNumbered(round * 4, round * 4 + 4)
    const opened = ids.map((id) => {
      const transaction = {
        id,
        state: 'open',
        createdBy: TENANT,
        createdAt: now,
        expiresAt: 1,
      } as const
      return store.commit(TENANT, [{ kind: 'open-transaction', transaction, openMax: 1_000 }])
    })
    await Promise.all(opened)
    const commits = ids.flatMap((id, at) => {
      const from = (round * 4 + at) * 1_000
      made += 140
      return [
        store.commit(TENANT, [
          { kind: 'enlist', transactionId: id, keys: [], now },
          insertNumbered(from, from + 140),
        ]),
        store.commit(TENANT, [{ kind: 'end-transaction', id, as: 'committed', now }]),
      ]
    })
    for (const it of await Promise.all(commits)) assert.equal(it, null)
    assert.equal((await list(store, ANY_TOKEN)).total, made)
  }
})
