import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { ANY_TOKEN, type TokenCondition } from '../../../ports/token-query.ts'
import { packId } from './ids.ts'
import { migrate, schemaOf } from './migrate.ts'
import { SqliteStore } from './store.ts'
import { begin, end, enlist, insert, succeed, token } from '../../../ports/store-kit.contract.ts'
import { packIndexes } from '../../../ports/packed-token.ts'
import {
  TENANT,
  countIn,
  freshFolder,
  idsNumbered,
  openStore,
} from '../../../../test/kit/sqlite-kit.ts'

test('schema.sql says what the migrations make', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  assert.equal(schemaOf(db), readFileSync(new URL('./schema.sql', import.meta.url), 'utf8'))
  db.close()
})

test('migrate() leaves a database of its version as it is', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  db.exec('UPDATE pulse SET beats = 7')
  const before = schemaOf(db)
  migrate(db)
  assert.equal(schemaOf(db), before)
  assert.equal(db.prepare('SELECT beats FROM pulse').get()?.beats, 7)
  db.close()
})

test('migrate() changes nothing when a migration fails', () => {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE answers (a)')
  assert.throws(() => migrate(db), /already exists/)
  assert.match(schemaOf(db), /^-- Version 0\n\nCREATE TABLE answers \(a\);\n$/)
  db.close()
})

test('tenants and their keys survive the migration that frees their names', () => {
  const db = new DatabaseSync(':memory:')
  const steps = new URL('./migrations/', import.meta.url)
  const [first, last] = ['0001-lay-the-ground.sql', '0014-rename-tenants-freely.sql']
  db.exec('PRAGMA foreign_keys = ON')
  db.exec(readFileSync(new URL(first, steps), 'utf8'))
  const insert = `INSERT INTO tenants (id, name, plan, settings, created_by, created_at)
    VALUES (?, 'same', 'standard', '{}', 'me', 0)`
  db.prepare(insert).run('a')
  assert.throws(() => db.prepare(insert).run('b'), /UNIQUE/)
  db.exec("INSERT INTO tenant_keys VALUES ('a', 'enc', 1, x'00', 0)")
  db.exec(`BEGIN; ${readFileSync(new URL(last, steps), 'utf8')}; COMMIT`)
  db.prepare(insert).run('b')
  assert.equal(db.prepare('SELECT count(*) AS n FROM tenants').get()!.n, 2)
  assert.equal(db.prepare('SELECT tenant FROM tenant_keys').get()!.tenant, 'a')
  assert.deepEqual(db.prepare('PRAGMA foreign_key_check').all(), [])
  assert.throws(
    () => db.exec("INSERT INTO tenant_keys VALUES ('c', 'enc', 1, x'00', 0)"),
    /FOREIGN/,
  )
  db.close()
})

test('open() refuses a database that is newer than the program, and lets go of it', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await store.close()
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const { user_version: version } = db.prepare('PRAGMA user_version').get()!
  db.exec('PRAGMA user_version = 1000')
  await assert.rejects(SqliteStore.open({ folder }), /version 1000, this program knows/)
  db.exec(`PRAGMA user_version = ${Number(version)}`)
  db.close()
  await openStore(t, { folder })
})

test('a database of the first version, with what a crash left in it, is all there and can all be removed', async (t) => {
  const folder = freshFolder(t)
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const first = new URL('./migrations/0001-lay-the-ground.sql', import.meta.url)
  db.exec(`${readFileSync(first, 'utf8')}; PRAGMA user_version = 1`)
  db.exec('BEGIN')
  const insert = db.prepare(
    `INSERT INTO tokens (tenant, serial, type, containers, data, metadata, indexes, created_by, created_at, unit)
     VALUES (?, ?, 'token', '/a/', x'00', ?, ?, 'me', 0, ?)`,
  )
  const index = db.prepare('INSERT INTO token_indexes VALUES (?, ?, ?)')
  const ids = idsNumbered(0, 1_200)
  const [open, closed] = [8, 7]
  for (const [n, id] of ids.entries()) {
    // The last two hundred were being staged; the hundred before came in a finished list.
    const stagingBatch = n >= 1_000 ? open : n >= 900 ? closed : null
    const hashes =
      n % 3 === 0 ? [new Uint8Array(32).fill(n & 127), new Uint8Array(32).fill(255)] : []
    const metadata = n % 2 === 0 ? JSON.stringify({ n: `Nr ${n % 4}`, ß: '🙂"' }) : null
    insert.run(packId(TENANT), packId(id), metadata, packIndexes(hashes), stagingBatch)
    for (const hash of hashes) index.run(packId(TENANT), hash, packId(id))
  }
  const range = [packId(TENANT), packId(ids[1_000]!), packId(ids[1_199]!)] as const
  db.prepare('INSERT INTO units VALUES (?, ?, ?, ?)').run(open, ...range)
  db.exec('COMMIT')
  db.close()

  const store = await openStore(t, { folder })
  const total = async (where: TokenCondition) => {
    const query = { where, within: null, now: 1 }
    return (await store.tokens.list(TENANT, query, { page: 1, size: 1 })).total
  }
  assert.equal(await total(ANY_TOKEN), 1_000)
  assert.equal(await total({ kind: 'metadata', key: 'n', value: 'NR 2', exact: false }), 250)
  assert.equal(await total({ kind: 'metadata', key: 'ß', value: '🙂"', exact: true }), 500)
  assert.equal(await total({ kind: 'index', hash: new Uint8Array(32).fill(255) }), 334)
  const [usage] = await store.tokens.usage(TENANT, { now: 1, since: 0 })
  assert.equal(usage?.count, 1_000)

  const tokens = await store.tokens.find(TENANT, ids)
  assert.equal(tokens.length, 1_000)
  for (const token of tokens.slice(0, 10)) {
    const changed = { ...token, metadata: { new: 'one' }, indexes: [], revision: 1, modifiedAt: 1 }
    const update = { kind: 'update-token', token: changed, unlessDuplicate: false, now: 1 } as const
    assert.equal(await store.commit(TENANT, [update]), null)
  }
  assert.equal(await total({ kind: 'metadata', key: 'new', value: 'one', exact: true }), 10)
  assert.equal(await total({ kind: 'index', hash: new Uint8Array(32).fill(255) }), 330)
  const left = await store.tokens.find(TENANT, ids)
  await Promise.all(
    left.map((token) => store.commit(TENANT, [{ kind: 'delete-token', token, now: 1 }])),
  )
  assert.equal(await total(ANY_TOKEN), 0)
  assert.deepEqual(await store.tokens.usage(TENANT, { now: 1, since: 0 }), [])
  await store.close()
  for (const table of ['tokens', 'token_indexes', 'units']) assert.equal(countIn(folder, table), 0)
})

test('a transaction opened by the version before keys were noted is committed', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await succeed(store, TENANT, [begin(7), enlist(7), insert(token(1))])
  await store.close()
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  for (const it of ['inserted', 'updated', 'deleted']) db.exec(`DROP TRIGGER measure_${it}_job`)
  db.exec('DROP TABLE job_sizes; DROP TABLE transaction_keys; PRAGMA user_version = 12')
  db.exec(
    'ALTER TABLE record_heads DROP COLUMN access_revision; ALTER TABLE record_heads DROP COLUMN access',
  )
  db.exec('ALTER TABLE sessions DROP COLUMN proof')
  db.exec('ALTER TABLE applications DROP COLUMN allowed_origins')
  db.close()
  const later = await openStore(t, { folder })
  await succeed(later, TENANT, [end(7, 'committed')])
  assert.deepEqual(await later.tokens.find(TENANT, [token(1).id]), [token(1)])
})
