/** Tests that no answer comes from a standby, with a real one. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'
import {
  meddlingProxy,
  spoil,
  type MeddlingProxy,
} from '../../../../test/kit/postgres/meddling-proxy.ts'
import { poolingProxy } from '../../../../test/kit/postgres/pooling-proxy.ts'
import { startReplicatedCluster } from '../../../../test/kit/postgres/standby.ts'
import { atTheEnd, query } from '../../../../test/kit/postgres/test-database.ts'
import {
  OTHER,
  TENANT,
  auditEvent,
  idsFound,
  insert,
  opened,
  succeed,
  token,
  uuid,
} from '../../../ports/store-kit.contract.ts'
import type { Change } from '../../../ports/change.ts'
import type { Store } from '../../../ports/store.ts'
import { openPostgresAuditLog } from './audit-log-snapshot.ts'
import { connectedTo } from './connection.ts'
import { connectionSettings } from './connection-settings.ts'
import { AGE_SECONDS_MAX } from './database.ts'
import { openPostgresInspection } from './inspection.ts'
import { readBesidePostgresServers } from './read-beside-service.ts'
import { PostgresStore } from './store.ts'
import { withVaultTarget } from './vault-target.ts'

const { primary, standby, caughtUp, stop } = await startReplicatedCluster()
atTheEnd(stop)

/** Opens a store through a proxy that leads to the primary. */
async function proxied(t: TestContext): Promise<{ proxy: MeddlingProxy; store: Store }> {
  const proxy = await meddlingProxy(primary.url)
  t.after(() => proxy.close())
  const store = await opened(t, () => PostgresStore.open({ url: proxy.url }))
  return { proxy, store }
}

function append(): Change {
  return { kind: 'append-audit-events', events: [auditEvent(1)] }
}

/** Returns an address that names the sockets of `urls`. */
function listOf(...urls: readonly string[]): string {
  const folders = urls.map((it) => new URL(it).searchParams.get('host')!)
  return `postgres://postgres@localhost/postgres?host=${folders.join(',')}`
}

/** Ends the connections of stores to the primary, so that they connect again. */
async function disconnect(): Promise<void> {
  await query(
    primary.url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'symbolon'`,
  )
}

/** Changes settings of the primary while it runs; null is the default. Later connections have them, and no earlier one is left. */
async function configure(
  t: TestContext,
  settings: Readonly<Record<string, string | null>>,
): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    const reset = `ALTER SYSTEM RESET ${name}`
    await query(primary.url, value === null ? reset : `ALTER SYSTEM SET ${name} = '${value}'`)
    if (value !== null) {
      t.after(async () => {
        await query(primary.url, reset)
        await query(primary.url, 'SELECT pg_reload_conf()')
      })
    }
    await query(primary.url, 'SELECT pg_reload_conf()')
    const expected = value === null ? 'boot_val' : `'${value}'`
    const shown = `SELECT setting = ${expected} AS it FROM pg_settings WHERE name = '${name}'`
    while ((await query(primary.url, shown)).rows[0].it !== true) await sleep(5)
  }
  await disconnect()
}

/** Resolves once commits wait for a standby, which takes the primary a moment after a reload. */
async function waitsForStandby(): Promise<void> {
  for (let waited = false; !waited;) {
    const commit = query(
      primary.url,
      `SET application_name = probe; SET synchronous_commit = on; SELECT pg_logical_emit_message(true, 'probe', '')`,
    )
    waited = await cancelWaiting('probe', commit)
    await commit
  }
}

/** Cancels the wait of `commit`, by a connection of that name, for a standby; returns false if it settles without one. */
async function cancelWaiting(application: string, commit: Promise<unknown>): Promise<boolean> {
  const progress = { settled: false }
  const settle = (): void => {
    progress.settled = true
  }
  void commit.then(settle, settle)
  const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE wait_event = 'SyncRep' AND application_name = '${application}'`
  for (;;) {
    if ((await query(primary.url, cancel)).rows.length > 0) return true
    if (progress.settled) return false
    await sleep(5)
  }
}

/** Has the primary ask this user for a password, which it does not ask others for. */
async function requirePassword(user: string): Promise<void> {
  const file = join(primary.folder, 'data', 'pg_hba.conf')
  writeFileSync(file, `local all ${user} scram-sha-256\n${readFileSync(file, 'utf8')}`)
  await query(primary.url, 'SELECT pg_reload_conf()')
  const asks = `SELECT 1 FROM pg_hba_file_rules WHERE '${user}' = ANY (user_name)`
  assert.equal((await query(primary.url, asks)).rows.length, 1)
}

describe('PostgresStore whose server turns into a standby', () => {
  test('uses no result that came with the report, and reads on over another connection', async (t) => {
    const { proxy, store } = await proxied(t)
    await succeed(store, TENANT, [insert(token(21))])
    const once = spoil(proxy, /FROM .*tokens/s, 'demote')
    assert.deepEqual(await idsFound(store, TENANT, [21]), [uuid(21)])
    assert.equal(once.met, 1)
    const always = spoil(proxy, /FROM .*tokens/s, 'demote', 99)
    const read = store.tokens.find(TENANT, [uuid(21)])
    await assert.rejects(read, { code: 'store_unavailable' })
    assert.ok(always.met > 1)
  })

  test('makes a commit once, over another connection, unless COMMIT was sent', async (t) => {
    const { proxy, store } = await proxied(t)
    const before = spoil(proxy, /INSERT INTO tokens/, 'demote')
    await succeed(store, TENANT, [insert(token(31))])
    assert.equal(before.met, 1)
    const after = spoil(proxy, /^COMMIT/, 'demote')
    await assert.rejects(store.commit(TENANT, [insert(token(32))]), /Cannot tell/)
    assert.equal(after.met, 1)
  })

  test('drops the connection on which a write is refused as read-only', async (t) => {
    const { proxy, store } = await proxied(t)
    await succeed(store, TENANT, [insert(token(41))])
    const refused = spoil(proxy, /INSERT INTO tokens/, { code: '25006' })
    await assert.rejects(store.commit(TENANT, [insert(token(42))]), /Cannot tell/)
    assert.equal(refused.met, 1)
    const made = spoil(proxy, /set_config\(name, value/, 'pass', 99)
    await succeed(store, TENANT, [insert(token(43))])
    assert.equal(made.met, 1)
  })
})

test('PostgresStore replaces its connections at their maximum age', async (t) => {
  const ends: (() => void)[] = []
  const real = setTimeout
  t.mock.method(globalThis, 'setTimeout', (...[work, ms]: Parameters<typeof setTimeout>) => {
    if (ms === AGE_SECONDS_MAX * 1_000) ends.push(work)
    return real(work, ms)
  })
  const { proxy, store } = await proxied(t)
  const made = spoil(proxy, /set_config\(name, value/, 'pass', Infinity)
  let id = 60
  // The start has made three for reads and one for writes.
  for (const connections of [0, 0, 2]) {
    if (connections === 2) for (const it of ends) it()
    await succeed(store, TENANT, [insert(token((id += 1)))])
    await idsFound(store, TENANT, [60])
    assert.equal(made.met, connections)
  }
})

describe('PostgresStore on a database whose settings change while it serves', () => {
  test('lets no commit go below the level at the start, and does not know the outcome of one whose wait was cancelled', async (t) => {
    const store = await opened(t, () => openPatiently(primary.url))
    await succeed(store, TENANT, [insert(token(80))])
    await configure(t, { synchronous_commit: 'local', synchronous_standby_names: 'nobody' })
    await waitsForStandby()
    const commit = store.commit(TENANT, [insert(token(81))])
    const unknown = assert.rejects(commit, ({ message, cause }: Error) => {
      return /Cannot tell/.test(message) && /canceling wait/.test((cause as Error).message)
    })
    assert.ok(await cancelWaiting('symbolon', commit))
    await unknown
    assert.deepEqual(await idsFound(store, TENANT, [80, 81]), [uuid(80), uuid(81)])
    await configure(t, { synchronous_commit: null, synchronous_standby_names: null })
    await succeed(store, TENANT, [insert(token(82))])
  })

  test('is not ready while commits wait for no standby, if they did at the start', async (t) => {
    const local = await opened(t, () => openPatiently(primary.url))
    await configure(t, { synchronous_standby_names: '*' })
    const store = await opened(t, () => openPatiently(primary.url))
    await store.check()
    await configure(t, { synchronous_standby_names: null })
    await assert.rejects(store.check(), /synchronous_standby_names is empty/)
    await succeed(store, TENANT, [insert(token(85))])
    assert.deepEqual(await idsFound(store, TENANT, [85]), [uuid(85)])
    const restarted = await opened(t, () => openPatiently(primary.url))
    for (const it of [local, restarted]) await it.check()
    await configure(t, { synchronous_standby_names: '*' })
    await store.check()
    await local.check()
    await configure(t, { synchronous_standby_names: null })
  })
})

test('PostgresStore gives its password over pooled connections, too', async (t) => {
  await query(primary.url, `CREATE ROLE clerk LOGIN PASSWORD 'hunter2'`)
  await query(primary.url, 'CREATE DATABASE clerks OWNER clerk')
  await requirePassword('clerk')
  const url = primary.url.replace('postgres@localhost/postgres', 'clerk:hunter2@localhost/clerks')
  const store = await opened(t, () => PostgresStore.open({ url }))
  await succeed(store, TENANT, [insert(token(90))])
  assert.deepEqual(await idsFound(store, TENANT, [90]), [uuid(90)])
  const wrong = PostgresStore.open({ url: url.replace('hunter2', 'hunter3') })
  await assert.rejects(wrong, ({ cause }: Error) => /password/.test((cause as Error).message))
})

describe('PostgresStore at an address with several hosts', () => {
  test('finds the primary, wherever it stands, and begins with it from then on', async (t) => {
    const proxy = await meddlingProxy(standby.url)
    t.after(() => proxy.close())
    const attempts = spoil(proxy, /^$/, 'pass', Infinity)
    for (const [n, url] of [
      listOf(proxy.url, primary.url),
      listOf(primary.url, proxy.url),
    ].entries()) {
      const store = await opened(t, () => PostgresStore.open({ url }))
      await succeed(store, TENANT, [insert(token(70 + n))])
      assert.deepEqual(await idsFound(store, TENANT, [70 + n]), [uuid(70 + n)])
    }
    // Only the first connection of the first store, at the start.
    assert.equal(attempts.met, 1)
  })

  test('names every host that it tried, and never the password', async () => {
    const url = listOf(standby.url, 'postgres://h/d?host=/no/such').replace(
      'postgres@',
      'postgres:hunter2@',
    )
    await assert.rejects(PostgresStore.open({ url }), ({ cause }: Error) => {
      const text = inspect(cause, { depth: Infinity, showHidden: true })
      return (
        /pg-\w+:5432: the server is a standby; \/no\/such:5432: .*ENOENT/.test(text) &&
        !/hunter2/.test(text)
      )
    })
  })
})

describe('PostgresStore behind an address that leads to a standby', () => {
  for (const [n, hidesStandby] of [false, true].entries()) {
    const how = hidesStandby ? 'that reports nothing' : 'that says so'
    const [first, second, third] = [n * 10 + 1, n * 10 + 2, n * 10 + 3] as const
    test(`${how}: answers no read, makes no commit, and works again when the address leads back`, async (t) => {
      const { proxy, store } = await proxied(t)
      proxy.hidesStandby = hidesStandby
      await succeed(store, TENANT, [insert(token(first))])
      await caughtUp()
      await query(standby.url, 'SELECT pg_wal_replay_pause()')
      t.after(() => query(standby.url, 'SELECT pg_wal_replay_resume()'))
      await succeed(store, TENANT, [insert(token(second))])
      proxy.switchTo(standby.url)
      await disconnect()
      const asked = spoil(proxy, /pg_is_in_recovery/, 'pass', Infinity)
      // More often than there are connections in both pools.
      for (let tries = 0; tries < 20; tries++) {
        const read = store.tokens.find(TENANT, [uuid(first), uuid(second)])
        await assert.rejects(read, { code: 'store_unavailable' })
        await assert.rejects(store.commit(TENANT, [insert(token(third))]))
      }
      await assert.rejects(store.check())
      assert.equal(asked.met > 0, hidesStandby)
      proxy.switchTo(primary.url)
      assert.deepEqual(await idsFound(store, TENANT, [first, second, third]), [
        uuid(first),
        uuid(second),
      ])
      await succeed(store, TENANT, [insert(token(third))])
    })
  }

  test('after a pooler has moved its sessions there: answers no read, and reports no loss', async (t) => {
    const proxy = await poolingProxy(primary.url)
    t.after(() => proxy.close())
    const store = await opened(t, () => PostgresStore.open({ url: proxy.url }))
    await succeed(store, TENANT, [insert(token(91)), append()])
    assert.deepEqual(await store.lostTips(), [])
    const command = await connectedTo(connectionSettings(proxy.url))
    t.after(() => command.end())
    await caughtUp()
    await query(standby.url, 'SELECT pg_wal_replay_pause()')
    t.after(() => query(standby.url, 'SELECT pg_wal_replay_resume()'))
    await succeed(store, TENANT, [insert(token(92)), append()])
    await proxy.moveTo(standby.url)
    await assert.rejects(command.begin('REPEATABLE READ READ ONLY'), /the server is a standby/)
    await command.query('ROLLBACK')
    await assert.rejects(store.lostTips(), { code: 'store_unavailable' })
    for (let tries = 0; tries < 20; tries++) {
      const read = store.tokens.find(TENANT, [uuid(91), uuid(92)])
      await assert.rejects(read, { code: 'store_unavailable' })
    }
    await proxy.moveTo(primary.url)
    assert.deepEqual(await idsFound(store, TENANT, [91, 92]), [uuid(91), uuid(92)])
    assert.deepEqual(await store.lostTips(), [])
  })

  test('is refused at the start, and by every command', async () => {
    const standbyRefused = (error: Error): boolean =>
      /standby/.test((error.cause as Error).message) && /reach/.test(error.message)
    const moved = (url: string): Promise<unknown> => withVaultTarget(url, async () => {})
    for (const open of [
      (url: string) => PostgresStore.open({ url }),
      moved,
      openPostgresAuditLog,
      openPostgresInspection,
      readBesidePostgresServers,
    ]) {
      await assert.rejects(open(standby.url), standbyRefused)
    }
  })

  test('is refused behind a pooler that repeats the report of an earlier server', async (t) => {
    const proxy = await poolingProxy(standby.url)
    t.after(() => proxy.close())
    const started = PostgresStore.open({ url: proxy.url })
    await assert.rejects(started, ({ cause }: Error) => /standby/.test((cause as Error).message))
  })

  // Last, since the servers part for good.
  test('works again when the standby is promoted, as does one with both hosts', async (t) => {
    const { proxy, store } = await proxied(t)
    const url = listOf(primary.url, standby.url)
    const listed = await opened(t, () => PostgresStore.open({ url }))
    await succeed(listed, OTHER, [insert(token(51))])
    await succeed(store, TENANT, [insert(token(51))])
    await caughtUp()
    proxy.switchTo(standby.url)
    await disconnect()
    await assert.rejects(store.tokens.find(TENANT, [uuid(51)]), { code: 'store_unavailable' })
    await primary.halt()
    await query(standby.url, 'SELECT pg_promote()')
    assert.deepEqual(await idsFound(store, TENANT, [51]), [uuid(51)])
    await succeed(store, TENANT, [insert(token(52))])
    assert.deepEqual(await idsFound(listed, OTHER, [51]), [uuid(51)])
    await succeed(listed, OTHER, [insert(token(52))])
  })
})
