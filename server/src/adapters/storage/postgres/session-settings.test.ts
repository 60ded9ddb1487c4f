/** Tests that our statements run with our settings, whatever the database has, with a session of their own and without. */
import assert from 'node:assert/strict'
import { after, describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { meddlingProxy } from '../../../../test/kit/postgres/meddling-proxy.ts'
import { PATIENT } from '../../../../test/kit/postgres/patient-store.ts'
import { poolingProxy } from '../../../../test/kit/postgres/pooling-proxy.ts'
import { clusterUrl, freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import {
  FRESH,
  TENANT,
  begin,
  end,
  enlist,
  idsFound,
  insert,
  opened,
  succeed,
  taken,
  token,
  uuid,
} from '../../../ports/store-kit.contract.ts'
import { openPostgresAuditLog } from './audit-log-snapshot.ts'
import { atLeisure, bounded, connectedTo } from './connection.ts'
import { connectionSettings } from './connection-settings.ts'
import { Database } from './database.ts'
import { openPostgresInspection } from './inspection.ts'
import { migrate } from './migrate.ts'
import type { PrimaryClient } from './primary-client.ts'
import { readBesidePostgresServers } from './read-beside-service.ts'
import { settingsUnheld } from './requirements.ts'
import { Session } from './session.ts'
import {
  NO_TIMEOUTS,
  type SessionTimeouts,
  sessionSettings,
  requiredSettings,
} from './session-settings.ts'
import { PostgresStore } from './store.ts'

/** Every setting of ours, with another value. Long enough for the statement that comes before ours apply. */
const OTHERWISE: Readonly<Record<string, string>> = {
  statement_timeout: '601s',
  lock_timeout: '602s',
  idle_in_transaction_session_timeout: '603s',
  transaction_timeout: '604s',
  idle_session_timeout: '605s',
  default_transaction_isolation: 'serializable',
  default_transaction_read_only: 'on',
  client_min_messages: 'error',
  client_encoding: 'LATIN1',
  bytea_output: 'escape',
  array_nulls: 'off',
  standard_conforming_strings: 'off',
  exit_on_error: 'on',
  enable_seqscan: 'on',
}

/** Returns a migrated database whose settings are others. */
async function databaseWith(settings: Readonly<Record<string, string>>): Promise<string> {
  const url = await freshDatabase()
  await atLeisure(connectionSettings(url), migrate)
  const name = new URL(url).pathname.slice(1)
  for (const [setting, value] of Object.entries(settings)) {
    await query(await clusterUrl(), `ALTER DATABASE ${name} SET ${setting} = '${value}'`)
  }
  return url
}

const { exit_on_error: _, ...OTHERWISE_POOLED } = OTHERWISE

for (const pooled of [false, true]) {
  const way = pooled ? 'a pooler that gives each transaction another session' : 'its own session'
  describe(`settings of the database, with ${way}`, () => {
    const reached = pooled
      ? databaseWith(OTHERWISE_POOLED).then((url) => poolingProxy(url))
      : databaseWith(OTHERWISE).then((url) => ({ url, close: async () => {}, switches: 0 }))
    after(async () => await (await reached).close())

    test('do not apply to the reads and writes of a store', async (t) => {
      const { url } = await reached
      const database = new Database(connectionSettings(url), 'on', PATIENT)
      t.after(() => database.close())
      await database.requireSettings()
      const { timeouts } = bounded(connectionSettings(url), PATIENT)
      const settings = pooled ? requiredSettings(timeouts) : sessionSettings(timeouts)
      assert.deepEqual(await settingsUnheld(database.ask, settings), [])
      const inRead = await database.ask(CHARACTERISTICS)
      assert.equal(inRead[0]!.isolation, 'read committed')
      await database.write(async (session) => {
        await session.begin()
        assert.deepEqual(await session.ask(CHARACTERISTICS), [READ_COMMITTED])
        assert.deepEqual(await settingsUnheld(session.ask, requiredSettings(timeouts)), [])
        await session.rollback()
      })
    })

    test('do not apply to commands, which have no timeouts but those they need', async (t) => {
      const { url } = await reached
      await atLeisure(connectionSettings(url), async (session) => {
        const none = requiredSettings(NO_TIMEOUTS)
        assert.deepEqual(await settingsUnheld(session.ask, none), [])
        await session.begin()
        assert.deepEqual(await session.ask(CHARACTERISTICS), [READ_COMMITTED])
        assert.deepEqual(await settingsUnheld(session.ask, none), [])
        await session.rollback()
        await session.run('ANALYZE')
      })
      const { facts, close } = await openPostgresInspection(url)
      t.after(close)
      assert.deepEqual(facts.settingsUnheld, [])
      assert.equal(facts.isolation, 'read committed')
      assert.equal(facts.ownSession, !pooled)
      assert.equal(facts.namesTracked, true)
    })

    test('change nothing of what a store does', async (t) => {
      const { url } = await reached
      const store = await opened(t, () => PostgresStore.open({ url, deadlineFactor: PATIENT }))
      const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
      const text = 'a \\ backslash, é, 漢 and 😀'
      const tokens = [1, 2, 3].map((n) => token(n, { data: bytes }))
      await succeed(store, TENANT, [insert(...tokens)])
      await succeed(store, TENANT, [insert(token(4, { id: text }))])
      await succeed(store, TENANT, [begin(7), enlist(7), insert(token(5))])
      await succeed(store, TENANT, [end(7, 'committed')])
      assert.deepEqual(await store.commit(TENANT, [insert(token(1))]), taken(token(1).id))
      const found = await store.tokens.find(TENANT, [token(1).id, text])
      assert.deepEqual(found, [tokens[0], token(4, { id: text })])
      assert.deepEqual(await idsFound(store, TENANT, [5]), [uuid(5)])
      await store.check()
      await store.sweep(0)
    })

    test('are as before after everything that the program does', async (t) => {
      const proxy = await reached
      const { url } = proxy
      const store = await opened(t, () => PostgresStore.open({ url, deadlineFactor: PATIENT }))
      await store.check()
      await (await openPostgresAuditLog(url)).close()
      const { tenants, close } = await readBesidePostgresServers(url)
      assert.equal(await tenants.find(FRESH), null)
      await close()
      if (pooled) assert.ok(proxy.switches > 0)
      for (let n = 0; n < 9; n++) {
        const { rows } = await query(url, "SELECT name FROM pg_settings WHERE source = 'session'")
        assert.deepEqual(rows, [])
      }
    })

    test('let no write lose to one that committed while it waited', async (t) => {
      const { url } = await reached
      const [one, other] = await Promise.all([sessionOf(t, url), sessionOf(t, url)])
      await one.begin()
      await other.begin()
      await other.ask('SELECT beats FROM pulse')
      await one.run('UPDATE pulse SET beats = beats + 1')
      await one.commit()
      await other.run('UPDATE pulse SET beats = beats + 1')
      await other.commit()
    })

    test('let no statement run or wait for longer than the service allows', async (t) => {
      const { url } = await reached
      const holder = await sessionOf(t, url)
      await holder.begin()
      await holder.run('LOCK TABLE pulse IN ACCESS EXCLUSIVE MODE')
      const read = { text: 'SELECT beats FROM pulse' }
      const impatient = await clientOf(t, url, { ...NO_TIMEOUTS, statement: 20 })
      const reading = impatient.runAlone(read, 'READ COMMITTED READ ONLY')
      await assert.rejects(reading, { code: '57014' })
      const waiting = await sessionOf(t, url, { ...NO_TIMEOUTS, lock: 20 })
      await waiting.begin()
      await assert.rejects(waiting.ask(read.text), { code: '55P03' })
      await waiting.rollback()
      await holder.rollback()
    })

    test('let no transaction idle for longer than the service allows', async (t) => {
      const { url } = await reached
      const idling = await clientOf(t, url, { ...NO_TIMEOUTS, idleInTransaction: 20 })
      const began = idling.begin('READ COMMITTED READ WRITE')
      const backend = idling.query<Backend>('SELECT pg_backend_pid() AS pid')
      await began
      const { rows } = await backend
      const left = `SELECT 1 FROM pg_stat_activity WHERE pid = ${rows[0]!.pid}`
      while ((await query(await clusterUrl(), left)).rows.length > 0) await sleep(5)
    })
  })
}

interface Backend {
  readonly pid: number
}

const CHARACTERISTICS = `SELECT current_setting('transaction_isolation') AS isolation,
  current_setting('transaction_read_only') AS read_only`

const READ_COMMITTED = { isolation: 'read committed', read_only: 'off' }

/** Returns a connection on which a statement that the database does not end fails in the end, with another error. */
async function clientOf(
  t: TestContext,
  url: string,
  timeouts: SessionTimeouts = NO_TIMEOUTS,
): Promise<PrimaryClient> {
  const client = await connectedTo({ ...connectionSettings(url), timeouts, query_timeout: 60_000 })
  t.after(() => client.end())
  return client
}

async function sessionOf(...client: Parameters<typeof clientOf>): Promise<Session> {
  return new Session(await clientOf(...client))
}

test('a read through a pooler is a transaction in one round trip', async (t) => {
  const pooler = await poolingProxy(await freshDatabase())
  t.after(() => pooler.close())
  const proxy = await meddlingProxy(pooler.url)
  t.after(() => proxy.close())
  const client = await clientOf(t, proxy.url)
  const sent: string[] = []
  proxy.decide = (statement) => {
    sent.push(statement.split(/[ ;]/)[0]!)
    return 'pass'
  }
  // Until then no response is read.
  client.connection.stream.pause()
  const read = client.runAlone({ text: 'VALUES (7)' }, 'READ COMMITTED READ ONLY')
  while (sent.length < 3) await sleep(5)
  client.connection.stream.resume()
  assert.deepEqual((await read).rows, [{ column1: 7 }])
  assert.deepEqual(sent, ['BEGIN', 'VALUES', 'COMMIT'])
})

test('every setting of ours is tested with another value', () => {
  const ours = sessionSettings(bounded(connectionSettings('postgres://localhost/d')).timeouts)
  assert.deepEqual(Object.keys(OTHERWISE).toSorted(), Object.keys(ours).toSorted())
})

test('PostgresStore.open() refuses a pooler that passes on the startup parameter, and keeps no session', async (t) => {
  const url = await freshDatabase()
  const proxy = await poolingProxy(url, { startupParameters: { statement_timeout: '20000' } })
  t.after(() => proxy.close())
  const started = PostgresStore.open({ url: proxy.url, deadlineFactor: PATIENT })
  await assert.rejects(started, /lock_timeout is 0, .*although the service sets that/)
})

test('a store keeps nothing in the sessions of a pooler that sends a startup parameter of its own', async (t) => {
  const url = await freshDatabase()
  const proxy = await poolingProxy(url, { startupParameters: { statement_timeout: '20001' } })
  t.after(() => proxy.close())
  const store = await opened(t, () =>
    PostgresStore.open({ url: proxy.url, deadlineFactor: PATIENT }),
  )
  await store.check()
  const { facts, close } = await openPostgresInspection(proxy.url)
  await close()
  assert.equal(facts.ownSession, false)
})

test('PostgresStore.open() refuses a pooler that shares sessions and does not track named statements', async (t) => {
  const proxy = await poolingProxy(await freshDatabase(), { tracksNames: false })
  t.after(() => proxy.close())
  const started = PostgresStore.open({ url: proxy.url, deadlineFactor: PATIENT })
  await assert.rejects(started, /set max_prepared_statements = 100 \(PgBouncer 1\.21 or later\)/)
  const { facts, close } = await openPostgresInspection(proxy.url)
  await close()
  assert.equal(facts.namesTracked, false)
})

test('PostgresStore.open() refuses a setting that ends a session, and that only a session of its own can change', async (t) => {
  const proxy = await poolingProxy(await databaseWith({ exit_on_error: 'on' }))
  t.after(() => proxy.close())
  const started = PostgresStore.open({ url: proxy.url, deadlineFactor: PATIENT })
  await assert.rejects(
    started,
    /exit_on_error is on, which only the owner .*ALTER ROLE \.\.\. SET exit_on_error = off\)/,
  )
})
