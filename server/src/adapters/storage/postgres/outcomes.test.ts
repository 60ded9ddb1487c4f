/** Tests the outcomes reported to callers when the database, or the connection to it, fails. */
import assert from 'node:assert/strict'
import { after, describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startCluster } from '../../../../test/kit/postgres/cluster.ts'
import {
  meddlingProxy,
  spoil,
  type MeddlingProxy,
} from '../../../../test/kit/postgres/meddling-proxy.ts'
import { PATIENT } from '../../../../test/kit/postgres/patient-store.ts'
import { freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import {
  NOW,
  OTHER,
  TENANT,
  answer,
  begin,
  end,
  enlist,
  auditEvent,
  idsFound,
  insert,
  opened,
  range,
  succeed,
  token,
  uuid,
} from '../../../ports/store-kit.contract.ts'
import type { Change } from '../../../ports/change.ts'
import type { Store } from '../../../ports/store.ts'
import { connectionSettings } from './connection-settings.ts'
import { Database } from './database.ts'
import { PostgresStore } from './store.ts'

/** Opens one store whose connections go through a proxy, and another that connects directly. */
async function meddled(
  t: TestContext,
  options: { readonly commitWaitMs?: number } = {},
): Promise<{
  proxy: MeddlingProxy
  store: Store
  straight: Store
}> {
  const url = await freshDatabase()
  const proxy = await meddlingProxy(url)
  // Before the store: bytes that the proxy swallowed would delay the store's closing by seconds.
  t.after(() => proxy.close())
  const straight = await opened(t, () => PostgresStore.open({ url }))
  const store = await opened(t, () => PostgresStore.open({ url: proxy.url, ...options }))
  return { proxy, store, straight }
}

/** Returns the numbers of tokens, audit events and answers, read again for some seconds while they are not the same. */
async function settledCounts(store: Store): Promise<[number, number, number]> {
  for (let tries = 0; ; tries++) {
    const tokens = (await idsFound(store, TENANT, [1])).length
    const events = (await store.auditLog.state(TENANT))?.last.number ?? 0
    const answers = (await store.answers.find(TENANT, 'answer 1', NOW)) === null ? 0 : 1
    if ((tokens === events && events === answers) || tries === 100) return [tokens, events, answers]
    await sleep(50)
  }
}

const HELD_MS = 987_654

/** Replaces the timer of the last commit's deadline, so that the test decides when it fires. */
function heldDeadline(t: TestContext): { pass: () => void } {
  const real = setTimeout
  let last = (): void => assert.fail('No commit has a deadline')
  t.mock.method(globalThis, 'setTimeout', (...[work, ms]: Parameters<typeof setTimeout>) => {
    if (ms === HELD_MS) last = work
    return real(work, ms)
  })
  return { pass: () => last() }
}

describe('PostgresStore.commit()', () => {
  for (const code of ['40001', '40P01']) {
    for (const which of [/FOR UPDATE/, /INSERT INTO tokens/, /INSERT INTO record/, /^COMMIT/]) {
      test(`makes what met ${code} at ${which.source} once, after all`, async (t) => {
        const { proxy, store, straight } = await meddled(t)
        const count = spoil(proxy, which, { code }, 4)
        await succeed(store, TENANT, [insert(token(1)), recorded(1)])
        assert.equal(count.met, 4)
        assert.deepEqual(await idsFound(straight, TENANT, [1]), [uuid(1)])
        assert.equal((await straight.auditLog.state(TENANT))?.last.number, 1)
      })
    }
  }

  test('locks a tenant only when the tokens that no other commit blocks are there', async (t) => {
    const { proxy, store } = await meddled(t)
    await succeed(store, TENANT, [insert(token(0)), recorded(0)])
    const sent: string[] = []
    proxy.decide = (statement) => {
      const [step] = /INSERT INTO tokens|FOR UPDATE|^COMMIT/.exec(statement) ?? []
      if (step !== undefined) sent.push(step)
      return 'pass'
    }
    await succeed(store, TENANT, [insert(...range(1, 2_500).map((n) => token(n))), recorded(1)])
    const [tokens, lock] = ['INSERT INTO tokens', 'FOR UPDATE']
    assert.deepEqual(sent, [tokens, tokens, tokens, lock, 'COMMIT'])
  })

  test('locks a tenant before it looks at whether a name is taken', async (t) => {
    const { proxy, store } = await meddled(t)
    await succeed(store, TENANT, [insert(token(0)), recorded(0)])
    const sent: string[] = []
    proxy.decide = (statement) => {
      if (/INSERT INTO tokens|FOR UPDATE/.test(statement)) sent.push(statement.slice(0, 6))
      return 'pass'
    }
    await succeed(store, TENANT, [insert(token(1, { id: 'own' }))])
    assert.deepEqual(sent, ['SELECT', 'INSERT'])
  })

  test('gives up after losing five races to another commit, and changes nothing', async (t) => {
    const { proxy, store, straight } = await meddled(t)
    const count = spoil(proxy, /INSERT INTO tokens/, { code: '40001' }, 99)
    await assert.rejects(store.commit(TENANT, [insert(token(1))]), /Cannot tell/)
    assert.equal(count.met, 5)
    assert.deepEqual(await idsFound(straight, TENANT, [1]), [])
    spoil(proxy, /^$/, 'pass')
    await succeed(store, TENANT, [insert(token(1))])
  })

  for (const which of [/^BEGIN/, /FOR UPDATE/, /INSERT INTO tokens/, /INSERT INTO answers/]) {
    test(`makes what lost its connection at ${which.source} once, over another one`, async (t) => {
      const { proxy, store, straight } = await meddled(t)
      for (const [n, fate] of (['lose', 'lose-answer', 'end'] as const).entries()) {
        const count = spoil(proxy, which, fate)
        await succeed(store, TENANT, [insert(token(n)), recorded(n), answer(n)])
        assert.equal(count.met, 1)
        assert.equal((await straight.auditLog.state(TENANT))?.last.number, n + 1)
      }
      assert.equal((await idsFound(straight, TENANT, [0, 1, 2])).length, 3)
    })
  }

  test('keeps nothing of a commit whose audit events cannot be made', async (t) => {
    const url = await freshDatabase()
    const store = await opened(t, () => PostgresStore.open({ url }))
    await succeed(store, TENANT, [insert(token(1)), recorded(1)])
    // A position that cannot be hashed.
    await query(url, 'UPDATE tenant_heads SET number = -7')
    const commits = range(2, 9).map((n) => store.commit(TENANT, [insert(token(n)), recorded(n)]))
    for (const it of await Promise.allSettled(commits)) assert.equal(it.status, 'rejected')
    assert.deepEqual(await idsFound(store, TENANT, range(1, 9)), [uuid(1)])
    await query(url, 'UPDATE tenant_heads SET number = 1')
    await succeed(store, TENANT, [insert(token(2)), recorded(2)])
  })

  // COMMIT is sent before the last statements are answered.
  const LAST = [/INSERT INTO record/, /UPDATE tenant_heads/, /INSERT INTO token_counts/, /^COMMIT/]
  const FATES = ['lose', 'lose-answer', 'swallow', { code: '40003' }] as const
  for (const [which, fate] of LAST.flatMap((it) => FATES.map((fate) => [it, fate] as const))) {
    test(`says that it does not know when ${which.source} is met by ${JSON.stringify(fate)}, and never does it twice`, async (t) => {
      const { proxy, store, straight } = await meddled(t, { commitWaitMs: HELD_MS })
      const deadline = heldDeadline(t)
      const count = spoil(proxy, which, fate)
      const commit = assert.rejects(
        store.commit(TENANT, [insert(token(1)), recorded(1), answer(1)]),
      )
      if (fate === 'swallow') {
        while (count.met === 0) await sleep(1)
        deadline.pass()
      }
      await commit
      assert.equal(count.met, 1)
      // The database may or may not have seen it, and may still be at it.
      const [tokens, events, answers] = await settledCounts(straight)
      if (fate === 'lose-answer' && which.test('COMMIT')) assert.equal(tokens, 1)
      if (fate === 'lose') assert.equal(tokens, 0)
      assert.deepEqual([events, answers], [tokens, tokens])
      spoil(proxy, /^$/, 'pass')
      await succeed(store, OTHER, [insert(token(2))])
    })
  }
})

describe('PostgresStore', () => {
  test('reads on when a connection is lost, and when a read loses a race to a commit', async (t) => {
    const { proxy, store } = await meddled(t)
    await succeed(store, TENANT, [insert(token(1))])
    for (const fate of ['lose', 'lose-answer', { code: '40001' }] as const) {
      const count = spoil(proxy, /FROM .*tokens/s, fate)
      assert.deepEqual(await idsFound(store, TENANT, [1]), [uuid(1)])
      assert.equal(count.met, 1)
    }
  })

  test('is ready, and sweeps, when the connection for it is lost', async (t) => {
    const { proxy, store } = await meddled(t)
    await succeed(store, TENANT, [insert(token(1, { expiresAt: NOW }))])
    for (const fate of ['lose', 'lose-answer', 'end'] as const) {
      const beat = spoil(proxy, /UPDATE pulse/, fate)
      await store.check()
      assert.equal(beat.met, 1)
    }
    const lost = spoil(proxy, /DELETE FROM tokens/, 'lose')
    assert.equal(await store.sweep(NOW), true)
    assert.equal(lost.met, 1)
    assert.equal(await store.sweep(NOW), false)
  })

  test('goes on when every one of its connections is ended by the database', async (t) => {
    const url = await freshDatabase()
    const store = await opened(t, () => PostgresStore.open({ url }))
    for (const n of range(0, 5)) {
      await query(
        url,
        // Test files share one server: only connections to this database.
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      )
      const outcomes = await Promise.all([
        store.commit(TENANT, [insert(token(n))]),
        store.commit(OTHER, [insert(token(n))]),
        store.tokens.find(TENANT, [uuid(n)]),
      ])
      assert.deepEqual(outcomes.slice(0, 2), [null, null])
    }
    assert.equal((await idsFound(store, TENANT, range(0, 5))).length, 5)
  })

  test('a lock that another server does not give back is a failure, and holds up no other tenant', async (t) => {
    const url = await freshDatabase()
    const store = await opened(t, () => PostgresStore.open({ url }))
    await succeed(store, TENANT, [insert(token(1))])
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    await other.query('BEGIN; SELECT 1 FROM tenant_heads FOR UPDATE')
    let over = false
    const stuck = assert.rejects(store.commit(TENANT, [insert(token(2))])).then(() => (over = true))
    // Commits of one batch share its fate.
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`
    while ((await query(url, waiting)).rows.length === 0) await sleep(1)
    const next = store.commit(TENANT, [insert(token(4))]).catch(() => {})
    await succeed(store, OTHER, [insert(token(3))])
    assert.equal(over, false)
    await Promise.all([stuck, next])
    await other.end()
    assert.deepEqual(await idsFound(store, TENANT, [2]), [])
  })
})

test('Database opens 12 connections and no more, however much is asked of it', async (t) => {
  const url = await freshDatabase()
  const database = new Database(connectionSettings(url), 'on', PATIENT)
  t.after(() => database.close())
  await query(url, 'CREATE TABLE held (a integer)')
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('BEGIN; LOCK TABLE held')
  const sql = 'SELECT a FROM held'
  const asked = Promise.all([
    ...range(0, 40).map(() => database.ask(sql)),
    ...range(0, 40).map(() => database.write((session) => session.run(sql))),
  ])
  // Test files share one server: only connections to this database.
  const own = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'symbolon'`
  const waiting = `${own} AND wait_event_type = 'Lock'`
  while ((await query(url, waiting)).rows.length < 12) await sleep(5)
  await holder.end()
  await asked
  assert.equal((await query(url, own)).rows.length, 12)
})

describe('PostgresStore while its database is away', () => {
  const clusters: { stop: () => Promise<void> }[] = []
  after(async () => {
    for (const it of clusters) await it.stop()
  })

  test('fails, loses nothing that it acknowledged, and serves again when the database is back', async (t) => {
    const cluster = await startCluster({ settings: ['restart_after_crash=on'] })
    clusters.push(cluster)
    const store = await opened(t, () => PostgresStore.open({ url: cluster.url }))
    await succeed(store, TENANT, [insert(token(0))])
    // Killing a backend makes the server end all connections and recover; no client can connect for a while.
    const { rows } = await query(
      cluster.url,
      "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'",
    )
    process.kill(Number(rows[0].pid), 'SIGKILL')
    const outcomes = new Map<number, 'made' | 'failed'>()
    let [n, back] = [1, 0]
    for (; back < 20; n++) {
      const outcome = await store.commit(TENANT, [insert(token(n))]).then(
        () => 'made' as const,
        () => 'failed' as const,
      )
      outcomes.set(n, outcome)
      if (outcome === 'made') back++
      await sleep(5)
    }
    const found = new Set(await idsFound(store, TENANT, range(1, n)))
    for (const [it, outcome] of outcomes) {
      if (outcome === 'made') assert.ok(found.has(uuid(it)), `acknowledged, and not there: ${it}`)
    }
  })

  test('refuses reads and commits with the same error as when the outcome is unknown', async (t) => {
    const cluster = await startCluster()
    const store = await opened(t, () => PostgresStore.open({ url: cluster.url }))
    await succeed(store, TENANT, [insert(token(0)), begin(1)])
    await cluster.stop()
    await assert.rejects(store.tokens.find(TENANT, [uuid(0)]), { code: 'store_unavailable' })
    await assert.rejects(store.tenants.find(TENANT), { code: 'store_unavailable' })
    await assert.rejects(store.commit(TENANT, [enlist(1), insert(token(1))]))
    await assert.rejects(store.commit(TENANT, [end(1, 'committed')]))
    await assert.rejects(store.check())
  })

  test('refuses a read that is not answered, after its time limit', async (t) => {
    const { proxy, store } = await meddled(t)
    await succeed(store, TENANT, [insert(token(1))])
    const real = setTimeout
    const ends: (() => void)[] = []
    t.mock.method(globalThis, 'setTimeout', (...[work, ms]: Parameters<typeof setTimeout>) => {
      if (ms === 4_500) ends.push(work)
      return real(work, ms === 4_500 ? 600_000 : ms).unref()
    })
    const count = spoil(proxy, /FROM .*tokens/s, 'swallow')
    const read = assert.rejects(store.tokens.find(TENANT, [uuid(1)]), { code: 'store_unavailable' })
    while (count.met === 0) await sleep(1)
    ends.at(-1)!()
    await read
    assert.deepEqual(await idsFound(store, TENANT, [1]), [uuid(1)])
  })

  test('turns commits away when too many wait', async (t) => {
    const url = await freshDatabase()
    const proxy = await meddlingProxy(url)
    t.after(() => proxy.close())
    const store = await opened(t, () => PostgresStore.open({ url: proxy.url, commitWaitMs: 1_500 }))
    spoil(proxy, /FOR UPDATE/, 'swallow', 99)
    const reasons = new Map<string, number>()
    await Promise.all(
      range(0, 12_000).map((n) =>
        store.commit(TENANT, [insert(token(n))]).catch((error: Error) => {
          reasons.set(error.message, (reasons.get(error.message) ?? 0) + 1)
        }),
      ),
    )
    assert.equal(reasons.get('Cannot commit: too many wait already'), 2_000)
    assert.equal(reasons.get('The database has not answered for 1500 ms'), 10_000)
  })
})

function recorded(n: number): Change {
  return { kind: 'append-audit-events', events: [auditEvent(n)] }
}
