import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { auditEvent } from '../../../ports/store-kit.contract.ts'
import type { Change } from '../../../ports/change.ts'
import { SqliteStore } from './store.ts'
import {
  TENANT,
  countIn,
  faultAt,
  freshFolder,
  idsNumbered,
  insertNumbered,
  openStore,
} from '../../../../test/kit/sqlite-kit.ts'

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
  const impossible = { ...token!, internalId: 'no uuid' }
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

test('a disk is not taken for one that does not answer where it was we who did not listen', async (t) => {
  const { probe, replied } = watchReplies(t)
  const store = await openStore(t, { folder: freshFolder(t), probe, commitWaitMs: 100 })
  const pass = stillTime(t)
  const committed = store.commit(TENANT, [insertNumbered(0, 1)])
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  // Handles no message until the writer has replied that the commit is on disk.
  while (!replied()) wait(5)
  pass(100)
  assert.equal(await committed, null)
  assert.equal(await store.commit(TENANT, [insertNumbered(1, 2)]), null)
})

test('a disk that does not answer keeps no caller waiting, and is used again when it does', async (t) => {
  const stall = stallAt(t, 1)
  const store = await openStore(t, {
    folder: freshFolder(t),
    probe: stall.probe,
    commitWaitMs: 100,
  })
  const pass = stillTime(t)
  const first = store.commit(TENANT, [insertNumbered(0, 1)])
  const list = store.commit(TENANT, [insertNumbered(1000, 1300)])
  await stall.begun()
  const queued = store.commit(TENANT, [insertNumbered(1, 2)])
  const queuedList = store.commit(TENANT, [insertNumbered(2000, 2300)])
  await nextTurn()
  pass(100)
  const outcomes = await Promise.allSettled([first, list, queued, queuedList])
  assert.deepEqual(
    outcomes.map((it) => it.status),
    ['rejected', 'rejected', 'rejected', 'rejected'],
  )
  await assert.rejects(store.commit(TENANT, [insertNumbered(2, 3)]), /does not answer/)
  stall.end()
  while ((await Promise.allSettled([store.check()]))[0].status === 'rejected') await nextTurn()
  await store.commit(TENANT, [insertNumbered(3, 4)])
  const ids = (await store.tokens.find(TENANT, idsNumbered(0, 4))).map((it) => it.id)
  // The commit already sent was written after all; the store could not know.
  assert.deepEqual(ids, [...idsNumbered(0, 1), ...idsNumbered(3, 4)])
  // What was not sent yet never is: lists are written in turns, and this one would be done before the next.
  assert.equal(await store.commit(TENANT, [insertNumbered(3000, 3300)]), null)
  assert.deepEqual(await store.tokens.find(TENANT, idsNumbered(2000, 2300)), [])
})

for (const { commitWaitMs, pauseMs, late } of [
  { commitWaitMs: 900, pauseMs: 600, late: false },
  { commitWaitMs: 200, pauseMs: 120, late: true },
]) {
  test(`of ${commitWaitMs} ms that a commit may take none were those of the one before`, async (t) => {
    const stall = stallAt(t, 2)
    const store = await openStore(t, { folder: freshFolder(t), probe: stall.probe, commitWaitMs })
    const pass = stillTime(t)
    await store.commit(TENANT, [insertNumbered(0, 1)])
    pass(pauseMs)
    const stalled = store.commit(TENANT, [insertNumbered(1, 2)])
    let settled = false
    const noting = (): void => void (settled = true)
    stalled.then(noting, noting)
    await stall.begun()
    for (const ms of [commitWaitMs - pauseMs, pauseMs - 1]) {
      pass(ms)
      for (let turn = 0; turn < 3; turn++) await nextTurn()
      assert.equal(settled, false)
    }
    if (late) {
      pass(1)
      await assert.rejects(stalled, /has not answered/)
      stall.end()
    } else {
      stall.end()
      assert.equal(await stalled, null)
    }
  })
}

test('when the audit log cannot be written nothing of the batch is, and later the store goes on', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await store.commit(TENANT, [insertNumbered(0, 1), recorded()])
  const db = new DatabaseSync(join(folder, 'symbolon.db'), { timeout: 5_000 })
  db.exec("CREATE TRIGGER shut BEFORE INSERT ON record BEGIN SELECT raise(ABORT, 'shut'); END")
  await assert.rejects(store.commit(TENANT, [insertNumbered(1, 2), recorded()]), /audit log cannot/)
  await assert.rejects(store.commit(TENANT, [recorded()]), /audit log cannot/)
  db.exec('DROP TRIGGER shut')
  db.close()
  await store.commit(TENANT, [insertNumbered(2, 3), recorded()])
  const ids = (await store.tokens.find(TENANT, idsNumbered(0, 3))).map((it) => it.id)
  assert.deepEqual(ids, [...idsNumbered(0, 1), ...idsNumbered(2, 3)])
  const numbers = (await store.auditLog.rowsAfter(TENANT, 0, 9)).map((it) => it.number)
  assert.deepEqual(numbers, [1, 2])
})

test('open() rejects and lets go of the folder when the writer cannot start', async (t) => {
  const folder = freshFolder(t)
  const probe = new URL('./no-such-probe.ts', import.meta.url)
  await assert.rejects(SqliteStore.open({ folder, probe }))
  await openStore(t, { folder })
})

/** Stops time for the store; returns how to advance it. */
function stillTime(t: TestContext): (ms: number) => void {
  let now = performance.now()
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => now)
  return (ms) => {
    now += ms
    t.mock.timers.tick(ms)
  }
}

/** Blocks the writer at its `at`th commit until the test releases it. */
function stallAt(t: TestContext, at: number) {
  const [begun, ended] = ['begun', 'ended'].map((it) => join(freshFolder(t), it)) as [
    string,
    string,
  ]
  const module = `
    import { existsSync, writeFileSync } from 'node:fs'
    let left = ${at}
    export default (point) => {
      if (point !== 'committing' || --left !== 0) return
      writeFileSync(${JSON.stringify(begun)}, '')
      const cell = new Int32Array(new SharedArrayBuffer(4))
      // Also once a failed test has removed the folder.
      const stands = () => existsSync(${JSON.stringify(begun)}) && !existsSync(${JSON.stringify(ended)})
      while (stands()) Atomics.wait(cell, 0, 0, 1)
    }`
  const end = (): void => writeFileSync(ended, '')
  return {
    probe: probeOf(module),
    begun: async () => {
      while (!existsSync(begun)) await nextTurn()
    },
    end,
  }
}

/** Lets this thread check whether the writer replied, without handling the message. */
function watchReplies(t: TestContext) {
  const file = join(freshFolder(t), 'replied')
  const module = `
    import { writeFileSync } from 'node:fs'
    export default (point) => {
      if (point === 'replied') writeFileSync(${JSON.stringify(file)}, '')
    }`
  return { probe: probeOf(module), replied: () => existsSync(file) }
}

function probeOf(module: string): URL {
  return new URL(`data:text/javascript,${encodeURIComponent(module)}`)
}

/** Blocks this thread. */
function wait(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

function recorded(): Change {
  return { kind: 'append-audit-events', events: [auditEvent(1)] }
}

function insertedBy(change: ReturnType<typeof insertNumbered>) {
  return change.kind === 'insert-tokens' ? change.tokens : []
}
