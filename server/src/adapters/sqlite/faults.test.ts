import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SqliteStore } from './sqlite-store.ts'
import {
  TENANT,
  countIn,
  faultAt,
  freshFolder,
  idsNumbered,
  insertNumbered,
  openStore,
} from '../../../test/kit/sqlite-kit.ts'

/** Result codes of SQLite. Source: sqlite.org/rescode.html. */
const IO_ERROR = 10
const FULL = 13

test('commit() rejects for good after the disk has failed, and says so once', async (t) => {
  const folder = freshFolder(t)
  const reasons: Error[] = []
  const store = await openStore(t, {
    folder,
    onFault: (reason) => reasons.push(reason),
    probe: faultAt('committing', 2, IO_ERROR),
  })
  assert.equal(await store.commit(TENANT, [insertNumbered(0, 1)]), null)
  const failing = [
    store.commit(TENANT, [insertNumbered(1, 2)]),
    store.commit(TENANT, [insertNumbered(2, 3)]),
    store.commit(TENANT, [insertNumbered(3, 1000)]),
  ]
  for (const it of failing) await assert.rejects(it, /injected/)
  await assert.rejects(store.commit(TENANT, [insertNumbered(1000, 1001)]), /injected/)
  await assert.rejects(store.check(), /injected/)
  assert.equal(reasons.length, 1)

  await store.close()
  const reopened = await openStore(t, { folder })
  const found = await reopened.tokens.find(TENANT, idsNumbered(0, 1001))
  assert.deepEqual(
    found.map((it) => it.id),
    idsNumbered(0, 1),
  )
})

test('commit() succeeds again once a full disk has room', async (t) => {
  const folder = freshFolder(t)
  const faults: Error[] = []
  const store = await openStore(t, {
    folder,
    onFault: (reason) => faults.push(reason),
    probe: faultAt('committing', 1, FULL),
  })
  await assert.rejects(store.commit(TENANT, [insertNumbered(0, 1)]), /injected/)
  assert.deepEqual(await store.tokens.find(TENANT, idsNumbered(0, 1)), [])
  assert.equal(await store.commit(TENANT, [insertNumbered(0, 1)]), null)
  await store.check()
  assert.deepEqual(faults, [])
})

test('a commit the database will not take is rejected alone', async (t) => {
  const store = await openStore(t, { folder: freshFolder(t) })
  const [token] = insertedBy(insertNumbered(1, 2))
  const impossible = { ...token!, serial: 'no uuid' }
  const outcomes = await Promise.allSettled([
    store.commit(TENANT, [insertNumbered(0, 1)]),
    store.commit(TENANT, [{ kind: 'insert-tokens', tokens: [impossible] }]),
    store.commit(TENANT, [
      { kind: 'insert-tokens', tokens: [...insertedBy(insertNumbered(10, 400)), impossible] },
    ]),
    store.commit(TENANT, [insertNumbered(2, 3)]),
  ])
  assert.deepEqual(
    outcomes.map((it) => it.status),
    ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
  )
  assert.equal((await store.tokens.find(TENANT, idsNumbered(0, 400))).length, 2)
  await store.check()
})

test('a commit that cannot be packed is rejected alone', async (t) => {
  const store = await openStore(t, { folder: freshFolder(t) })
  const [token] = insertedBy(insertNumbered(1, 2))
  const impossible = { ...token!, data: undefined as unknown as Uint8Array }
  const outcomes = await Promise.allSettled([
    store.commit(TENANT, [insertNumbered(0, 1)]),
    store.commit(TENANT, [{ kind: 'insert-tokens', tokens: [impossible] }]),
    store.commit(TENANT, [insertNumbered(2, 3)]),
  ])
  assert.deepEqual(
    outcomes.map((it) => it.status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.equal((await store.tokens.find(TENANT, idsNumbered(0, 3))).length, 2)
})

test('a long list that is refused leaves nothing in the file', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await store.commit(TENANT, [insertNumbered(900, 901)])
  const conflict = await store.commit(TENANT, [insertNumbered(0, 1000)])
  assert.equal(conflict?.kind, 'token-id-taken')
  await store.close()
  assert.equal(countIn(folder, 'tokens'), 1)
  assert.equal(countIn(folder, 'token_indexes'), 1)
  assert.equal(countIn(folder, 'units'), 0)
})

test('short commits overtake a long list', async (t) => {
  const store = await openStore(t, { folder: freshFolder(t) })
  const order: string[] = []
  const list = store.commit(TENANT, [insertNumbered(0, 5000)]).then(() => order.push('long'))
  for (let n = 5000; n < 5010; n++) {
    await store.commit(TENANT, [insertNumbered(n, n + 1)])
    order.push('short')
  }
  await list
  assert.deepEqual(order, [...Array<string>(10).fill('short'), 'long'])
})

test('open() rejects and lets go of the folder when the writer cannot start', async (t) => {
  const folder = freshFolder(t)
  const probe = new URL('./no-such-probe.ts', import.meta.url)
  await assert.rejects(SqliteStore.open({ folder, probe }))
  await openStore(t, { folder })
})

function insertedBy(change: ReturnType<typeof insertNumbered>) {
  return change.kind === 'insert-tokens' ? change.tokens : []
}
