/** Several servers on one database: the program as an operator runs it, with nothing shared but that. */
import assert from 'node:assert/strict'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../src/base/json.ts'
import { freshDatabase, query } from '../kit/postgres/test-database.ts'
import { preparedVault } from '../kit/prepared-vault.ts'
import {
  type RunningVault,
  runProgram,
  runSymbolon,
  startVault,
  temporaryFolder,
} from '../kit/running-vault.ts'

interface Pair {
  readonly database: string
  readonly servers: readonly [RunningVault, RunningVault]
  /** Of a private application that may do anything with tokens. */
  readonly key: string
  readonly managementKey: string
  /** Runs a command beside the servers. */
  readonly run: (...args: string[]) => ReturnType<typeof runSymbolon>
}

let shared: Promise<Pair> | null = null
const endings: (() => unknown)[] = []
after(async () => {
  for (const it of endings.toReversed()) await it()
})

/** Returns the pair that the tests share. */
function pair(): Promise<Pair> {
  return (shared ??= startPair({ after: (ending: () => unknown) => void endings.push(ending) }))
}

/** Two servers with a data folder each, the same root key, and one database. */
async function startPair(t: { after: (ending: () => unknown) => void }): Promise<Pair> {
  const { folder: one, where, key: managementKey } = await preparedVault(t, 'PostgreSQL')
  const other = temporaryFolder(t)
  const SYMBOLON_DATABASE_URL = where['SYMBOLON_DATABASE_URL']!
  const run = (...args: string[]) => runSymbolon(args, where)
  copyFileSync(join(one, 'root.key'), join(other, 'root.key'))
  const servers = await Promise.all(
    [one, other].map((it) => startVault(it, { SYMBOLON_DATABASE_URL })),
  )
  t.after(() => Promise.all(servers.map((it) => it.stop())))
  const application = await call(servers[0]!, managementKey, 'POST', '/applications', {
    name: 'all',
    type: 'private',
    permissions: ['token:create', 'token:read', 'token:use', 'token:update', 'token:delete'],
    rules: [
      {
        description: 'all',
        priority: 1,
        container: '/',
        transform: 'reveal',
        permissions: ['token:create', 'token:read', 'token:use', 'token:update', 'token:delete'],
      },
    ],
  })
  const key = application.body['key'] as string
  return {
    database: SYMBOLON_DATABASE_URL,
    servers: servers as [RunningVault, RunningVault],
    key,
    managementKey,
    run,
  }
}

async function call(
  server: RunningVault,
  key: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: JsonObject }> {
  const reply = await fetch(server.url + path, {
    method,
    headers: { 'BT-API-KEY': key, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await reply.text()
  return { status: reply.status, body: text === '' ? {} : (JSON.parse(text) as JsonObject) }
}

test('a server whose root key is elsewhere has a data folder for orders, and changes the key it uses on order', async (t) => {
  const [database, keys] = [await freshDatabase(), temporaryFolder(t)]
  const folder = join(keys, 'data')
  const variables = {
    SYMBOLON_DATABASE_URL: database,
    SYMBOLON_ROOT_KEY_FILE: join(keys, 'root.key'),
  }
  const SYMBOLON_ROOT_KEY_NEXT_FILE = join(keys, 'next.key')
  writeFileSync(SYMBOLON_ROOT_KEY_NEXT_FILE, Buffer.alloc(32, 8), { mode: 0o600 })
  const server = await startVault(folder, { ...variables, SYMBOLON_ROOT_KEY_NEXT_FILE })
  t.after(() => server.stop())
  const rotated = await runSymbolon(['keys', 'rotate', '--root'], {
    ...variables,
    SYMBOLON_DATA_DIR: folder,
    SYMBOLON_ROOT_KEY_NEXT_FILE,
  })
  assert.equal(rotated.status, 0, rotated.err)
  await server.stop()
  assert.match(server.printed(), /"event":"root_key_replaced"/)
  assert.doesNotMatch(server.printed(), /"event":"no_orders"/)
})

test('what one server stores the other finds at once, and can change and delete', async () => {
  const { servers, key } = await pair()
  const [one, other] = servers
  const made = await call(one, key, 'POST', '/tokens', { type: 'token', data: 'secret' })
  assert.equal(made.status, 201)
  const path = `/tokens/${made.body['id'] as string}`
  assert.equal((await call(other, key, 'GET', path)).body['data'], 'secret')
  const patched = await call(other, key, 'PATCH', path, { data: 'changed' }, MERGE)
  assert.equal(patched.status, 200)
  assert.equal((await call(one, key, 'GET', path)).body['data'], 'changed')
  assert.equal((await call(one, key, 'DELETE', path)).status, 204)
  assert.equal((await call(other, key, 'GET', path)).status, 404)
})

test('a request that is repeated at the other server gets the same answer, and has one effect', async () => {
  const { servers, key, database } = await pair()
  const headers = { 'BT-IDEMPOTENCY-KEY': 'once' }
  const send = (server: RunningVault) =>
    call(
      server,
      key,
      'POST',
      '/tokens',
      { type: 'token', metadata: { of: 'repeated' }, data: 'x' },
      headers,
    )
  const replies = await Promise.all([0, 1, 0, 1, 0, 1].map((n) => send(servers[n]!)))
  const made = replies.filter((it) => it.status === 201)
  for (const { status } of replies) assert.ok(status === 201 || status === 409, String(status))
  assert.equal(new Set(made.map((it) => it.body['id'])).size, 1)
  for (const it of servers) assert.deepEqual(await send(it), made[0])
  assert.equal((await tokensOf(database, 'repeated')).rowCount, 1)
})

test('of duplicates that two servers are asked for at once one is made', async () => {
  const { servers, key, database } = await pair()
  const metadata = { of: 'duplicates' }
  const body = { type: 'token', data: 'duplicate', metadata, deduplicate_token: true }
  const replies = await Promise.all(
    Array.from({ length: 12 }, (_, n) => call(servers[n % 2]!, key, 'POST', '/tokens', body)),
  )
  const ids = new Set(replies.map((it) => it.body['id']))
  assert.deepEqual([ids.size, typeof [...ids][0]], [1, 'string'])
  assert.equal((await tokensOf(database, 'duplicates')).rowCount, 1)
})

test('a transaction that one server opened goes on at the other', async () => {
  const { servers, key } = await pair()
  const [one, other] = servers
  const opened = await call(one, key, 'POST', '/transactions')
  assert.equal(opened.status, 201, JSON.stringify(opened.body))
  const id = opened.body['id'] as string
  const within = { 'BT-TRANSACTION-ID': id }
  const made = await call(other, key, 'POST', '/tokens', { type: 'token', data: 'x' }, within)
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const path = `/tokens/${made.body['id'] as string}`
  assert.equal((await call(one, key, 'GET', path)).status, 404)
  const patched = await call(one, key, 'PATCH', path, { data: 'y' }, { ...MERGE, ...within })
  assert.equal(patched.status, 200, JSON.stringify(patched.body))
  const committed = await call(other, key, 'POST', `/transactions/${id}/commit`)
  assert.ok(committed.status < 300, JSON.stringify(committed))
  assert.equal((await call(one, key, 'GET', path)).body['data'], 'y')
})

test('the audit log that two servers wrote at once is one chain, with checkpoints; and no server takes another root key', async (t) => {
  const { servers, key, run, database } = await pair()
  await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      call(servers[n % 2]!, key, 'POST', '/tokens', { type: 'token', data: 'x' }),
    ),
  )
  // The other tests of the pair are above.
  for (const it of servers) assert.equal((await it.stop()).status, 0)
  const { status, out, err } = await run('audit', 'verify', '--json')
  assert.equal(status, 0, out + err)
  const verdict = JSON.parse(out) as Record<string, number>
  assert.ok(verdict['last']! > 200)
  assert.equal(verdict['sealed'], verdict['last'])

  const before = await contentsOf(database)
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'root.key'), new Uint8Array(32).fill(7), { mode: 0o600 })
  const refused = await runProgram(['serve'], {
    SYMBOLON_DATABASE_URL: database,
    SYMBOLON_DATA_DIR: folder,
    SYMBOLON_PORT: '0',
  })
  assert.equal(refused.status, 1)
  const sentence = /^symbolon serve: The data was set up with root key [0-9a-f]+, but root key/
  assert.match(refused.err, sentence)
  assert.deepEqual(await contentsOf(database), before)

  await query(database, "UPDATE record SET entry = entry || '\\x00' WHERE number = 4")
  const changed = await run('audit', 'verify')
  assert.equal(changed.status, 1)
  assert.match(changed.out, /: BROKEN: event 4 was changed/)
})

test('a data key is replaced by the command, and a start of another server goes on with what was begun', async (t) => {
  const { folder, where } = await preparedVault(t, 'PostgreSQL')
  const elsewhere = temporaryFolder(t)
  copyFileSync(join(folder, 'root.key'), join(elsewhere, 'root.key'))
  const server = await startVault(folder, where)
  t.after(() => server.stop())
  const command = runSymbolon(['keys', 'rotate'], where)
  const versions = async (): Promise<number[]> => {
    const asked = "SELECT version FROM tenant_keys WHERE purpose = 'enc' ORDER BY version"
    return (await query(where['SYMBOLON_DATABASE_URL']!, asked)).rows.map((it) => it.version)
  }
  while (!server.printed().includes('"event":"key_rotation",')) await sleep(20)
  assert.deepEqual(await versions(), [1, 2])
  // No server seals under it until every server has had time to read it.
  await server.stop()
  const { status, out } = await command
  assert.equal(status, 1)
  assert.match(out, /: data key 2, \d+ left/)

  const other = await startVault(elsewhere, { ...where, SYMBOLON_DATA_DIR: elsewhere })
  t.after(() => other.stop())
  // It is ready before it finds the rotation in progress, and a stopping server begins nothing.
  while (!other.printed().includes('"event":"key_rotation",')) await sleep(20)
  await other.stop()
  assert.deepEqual(await versions(), [1, 2])
})

test('a backup is refused: a data folder from before is not what is in use', async (t) => {
  const { run } = await pair()
  const { status, err } = await run('backup', '--to', join(temporaryFolder(t), 'copy'))
  assert.equal(status, 1)
  assert.match(err, /Back up a PostgreSQL database with its own tools/)
})

test('a password is not repeated when the address of the database is no good', async () => {
  for (const url of [
    'mysql://a:hunter2@h/d',
    'postgres://a:hunter2@h/',
    'postgres://a:hunter2@h/d?x=1',
  ]) {
    const { status, err } = await runProgram(['serve'], { SYMBOLON_DATABASE_URL: url })
    assert.equal(status, 1)
    assert.doesNotMatch(err, /hunter2/)
    assert.match(err, /^symbolon serve: .*(SYMBOLON_DATABASE_URL|address of the database)/)
  }
})

const MERGE = { 'content-type': 'application/merge-patch+json' }

/** How many rows each table has, and where audit logs end. */
async function contentsOf(database: string): Promise<unknown> {
  const { rows } = await query(
    database,
    `SELECT (SELECT count(*) FROM tenants) AS tenants, (SELECT count(*) FROM record) AS events,
       (SELECT count(*) FROM applications) AS applications, (SELECT count(*) FROM installation) AS installed,
       (SELECT string_agg(hash::text || coalesce(seal, ''), '' ORDER BY tenant) FROM tenant_heads) AS tips`,
  )
  return rows
}

/** The tokens with metadata `of` that. */
async function tokensOf(database: string, of: string) {
  return await query(database, `SELECT 1 FROM tokens WHERE metadata LIKE '%${of}%'`)
}
