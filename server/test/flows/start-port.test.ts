/** The port during a start: closed until requests succeed, and never open in a start that fails. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { holdDataFolder } from '../../src/adapters/storage/sqlite/data-folder.ts'
import { freshDatabase, query } from '../kit/postgres/test-database.ts'
import { preparedVault } from '../kit/prepared-vault.ts'
import { runProgram, startVault, temporaryFolder } from '../kit/running-vault.ts'

/** A loopback address that no other process uses: ports of 127.0.0.1 change hands all the time. */
const SYMBOLON_HOST = `127.${64 + ((process.pid >> 16) & 63)}.${(process.pid >> 8) & 255}.${process.pid & 255}`
const SYMBOLON_PORT = '4400'
const LISTEN = { SYMBOLON_HOST, SYMBOLON_PORT }

describe('a start that fails accepts no connection', () => {
  test('with another root key than that of the data', async (t) => {
    const { folder } = await preparedVault(t)
    const other = join(temporaryFolder(t), 'root.key')
    writeFileSync(other, Buffer.alloc(32, 7), { mode: 0o600 })
    const variables = { SYMBOLON_DATA_DIR: folder, SYMBOLON_ROOT_KEY_FILE: other }
    await assertClosedThroughout(variables, /root key/)
  })

  test('in a data folder that another process holds', async (t) => {
    const { folder } = await preparedVault(t)
    const held = holdDataFolder(folder)
    t.after(() => held.release())
    await assertClosedThroughout({ SYMBOLON_DATA_DIR: folder }, /another process is using it/)
  })

  test('with a database that cannot be migrated, on SQLite', async (t) => {
    const { folder } = await preparedVault(t)
    const db = new DatabaseSync(join(folder, 'symbolon.db'))
    db.exec('PRAGMA user_version = 1000')
    db.close()
    await assertClosedThroughout({ SYMBOLON_DATA_DIR: folder }, /start the newer program/)
  })

  test('with a database that cannot be migrated, on PostgreSQL', async (t) => {
    const { where } = await preparedVault(t, 'PostgreSQL')
    await query(where['SYMBOLON_DATABASE_URL']!, 'UPDATE schema_version SET version = 1000')
    await assertClosedThroughout(where, /start the newer program/)
  })

  test('without a vault, with SYMBOLON_NO_CREATE', async (t) => {
    const SYMBOLON_DATA_DIR = temporaryFolder(t)
    await assertClosedThroughout({ SYMBOLON_DATA_DIR, SYMBOLON_NO_CREATE: 'on' }, /no symbolon.db/)
  })
})

describe('while a start takes long, connections are refused', () => {
  test('as long as the database does not answer, and then the start fails', async (t) => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    t.after(() => silent.close())
    const { port } = silent.address() as AddressInfo
    const variables = {
      SYMBOLON_DATA_DIR: temporaryFolder(t),
      SYMBOLON_DATABASE_URL: `postgres://symbolon@127.0.0.1:${port}/symbolon`,
    }
    const connected = once(silent, 'connection')
    const start = assertClosedThroughout(variables, /Cannot reach the database/)
    const [socket] = (await connected) as [Socket]
    for (let look = 0; look < 50; look++) assert.equal(await outcomeOfConnecting(), 'refused')
    socket.destroy()
    await start
  })

  test('as long as another server migrates, and then the first request succeeds', async (t) => {
    const SYMBOLON_DATABASE_URL = await freshDatabase()
    const migrating = new pg.Client({ connectionString: SYMBOLON_DATABASE_URL })
    await migrating.connect()
    t.after(() => migrating.end())
    await migrating.query('BEGIN')
    // The lock of migrate().
    await migrating.query('SELECT pg_advisory_xact_lock($1)', [0x73796d62])
    const starting = startVault(temporaryFolder(t), { ...LISTEN, SYMBOLON_DATABASE_URL })
    const waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while ((await migrating.query(waiting)).rowCount === 0) await sleep(5)
    for (let look = 0; look < 50; look++) assert.equal(await outcomeOfConnecting(), 'refused')
    await migrating.query('ROLLBACK')
    const vault = await starting
    t.after(() => vault.stop())
    assert.equal(await outcomeOfConnecting(), 200)
  })
})

test('from the first connection that is accepted, every request succeeds, on the first start and the next', async (t) => {
  const folder = temporaryFolder(t)
  for (const start of ['first', 'next']) {
    const watch = watchPort()
    const vault = await startVault(folder, LISTEN)
    const outcomes = await watch.stop()
    assert.equal(await outcomeOfConnecting(), 200, start)
    assert.equal((await vault.stop()).status, 0)
    const open = outcomes.indexOf(200)
    assert.deepEqual(new Set(outcomes.slice(0, open === -1 ? undefined : open)), REFUSED)
    if (open !== -1) assert.deepEqual(new Set(outcomes.slice(open)), new Set([200]))
  }
})

const REFUSED = new Set(['refused'])

/** Starts the service, which must fail with this message, and connects repeatedly until it has ended. */
async function assertClosedThroughout(
  variables: Record<string, string>,
  message: RegExp,
): Promise<void> {
  const watch = watchPort()
  const { status, err } = await runProgram(['serve'], { ...variables, ...LISTEN })
  const outcomes = await watch.stop()
  assert.equal(status, 1)
  assert.match(err, message)
  assert.deepEqual(new Set(outcomes), REFUSED)
}

type Outcome = 'refused' | 'broken off' | number

/** Connects every millisecond, one connection at a time. */
function watchPort(): { readonly stop: () => Promise<Outcome[]> } {
  const stopping = new AbortController()
  const outcomes: Outcome[] = []
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      outcomes.push(await outcomeOfConnecting())
      await sleep(1)
    }
  })()
  return {
    stop: async () => {
      stopping.abort()
      await watching
      return outcomes
    },
  }
}

/** Connects, and if that succeeds asks whether the service is ready: returns the status of the response. */
async function outcomeOfConnecting(): Promise<Outcome> {
  const socket = connect(Number(SYMBOLON_PORT), SYMBOLON_HOST)
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  let outcome: Outcome = 'refused'
  let response = ''
  socket.on('connect', () => {
    outcome = 'broken off'
    socket.write('GET /health/ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  })
  socket.on('data', (chunk) => (response += chunk.toString('latin1')))
  socket.on('error', () => {})
  socket.on('close', () => {
    const status = /^HTTP\/1\.1 (\d+) /.exec(response)?.[1]
    resolve(status === undefined ? outcome : Number(status))
  })
  return await promise
}
