import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { atTheEnd, freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'
import {
  TENANT,
  begin,
  end,
  enlist,
  insert,
  range,
  succeed,
  token,
} from '../../../ports/store-kit.contract.ts'
import { connectionSettings } from './connection-settings.ts'
import { atLeisure } from './connection.ts'
import { migrate, schemaOf } from './migrate.ts'
import { PostgresStore } from './store.ts'

test('schema.sql says what the migrations make', async () => {
  const settings = connectionSettings(await freshDatabase())
  await atLeisure(settings, migrate)
  const schema = await atLeisure(settings, schemaOf)
  assert.equal(schema, readFileSync(new URL('./schema.sql', import.meta.url), 'utf8'))
})

test('migrate() leaves a database of its version as it is', async () => {
  const url = await freshDatabase()
  const settings = connectionSettings(url)
  await atLeisure(settings, migrate)
  await query(url, 'UPDATE pulse SET beats = 7')
  const before = await atLeisure(settings, schemaOf)
  await atLeisure(settings, migrate)
  assert.equal(await atLeisure(settings, schemaOf), before)
  assert.equal((await query(url, 'SELECT beats FROM pulse')).rows[0].beats, '7')
})

test('migrate() changes nothing when a migration fails', async () => {
  const url = await freshDatabase()
  await query(url, 'CREATE TABLE answers (a integer)')
  await assert.rejects(atLeisure(connectionSettings(url), migrate), /already exists/)
  const { rows } = await query(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
  assert.deepEqual(rows, [{ tablename: 'answers' }])
})

test('servers that start at the same time on an empty database migrate it once', async (t) => {
  const url = await freshDatabase()
  const stores = await Promise.all(Array.from({ length: 4 }, () => PostgresStore.open({ url })))
  t.after(() => Promise.all(stores.map((it) => it.close())))
  assert.equal((await query(url, 'SELECT beats FROM pulse')).rowCount, 1)
})

test('open() refuses a database that is newer than the program, and changes nothing', async () => {
  const url = await freshDatabase()
  await (await PostgresStore.open({ url })).close()
  await query(url, 'UPDATE schema_version SET version = 1000')
  await assert.rejects(PostgresStore.open({ url }), /version 1000, this program knows/)
  const { rows } = await query(url, 'SELECT version FROM schema_version')
  assert.deepEqual(rows, [{ version: 1000 }])
})

test('open() refuses a database that acknowledges before it is durable', async () => {
  const url = await freshDatabase()
  const { rows } = await query(url, 'SELECT current_database() AS name')
  const set = (value: string) =>
    query(url, `ALTER DATABASE ${rows[0].name} SET synchronous_commit = ${value}`)
  for (const value of ['off', 'local', 'remote_write']) {
    await set(value)
    const sentence = new RegExp(`synchronous_commit is ${value}, so it`)
    await assert.rejects(PostgresStore.open({ url }), sentence)
  }
  for (const value of ['on', 'remote_apply']) {
    await set(value)
    await (await PostgresStore.open({ url })).close()
  }
})

test('open() needs no more than a schema to create in, the first of the search path, and leaves the others alone', async () => {
  const url = new URL(await freshDatabase())
  const name = url.pathname.slice(1)
  const user = `${name}_user`
  await query(
    url.href,
    `CREATE ROLE ${user} LOGIN; CREATE SCHEMA other; CREATE SCHEMA own;
     GRANT USAGE, CREATE ON SCHEMA own, other TO ${user};
     ALTER ROLE ${user} IN DATABASE ${name} SET search_path = missing, own, other, public`,
  )
  const superuser = url.href
  atTheEnd(() => query(superuser, `DROP OWNED BY ${user}; DROP ROLE ${user}`))
  url.username = user
  const store = await PostgresStore.open({ url: url.href })
  await succeed(store, TENANT, [insert(token(1))])
  await store.close()
  const schemas = `SELECT DISTINCT schemaname FROM pg_tables
    WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`
  assert.deepEqual((await query(superuser, schemas)).rows, [{ schemaname: 'own' }])
})

test('open() refuses a database that has no place for every text', async (t) => {
  const url = await databaseEncodedIn('LATIN1', t)
  await assert.rejects(PostgresStore.open({ url }), /server_encoding is LATIN1, so/)
})

test('open() takes a database that stores text as plain bytes, and every text comes back', async (t) => {
  const url = await databaseEncodedIn('SQL_ASCII', t)
  const store = await openPatiently(url)
  t.after(() => store.close())
  const stored = token(1, { id: 'é, 漢 and 😀' })
  await succeed(store, TENANT, [insert(stored)])
  assert.deepEqual(await store.tokens.find(TENANT, [stored.id]), [stored])
})

async function databaseEncodedIn(encoding: string, t: TestContext): Promise<string> {
  const url = await freshDatabase()
  const address = new URL(url)
  const name = `${address.pathname.slice(1)}_${encoding.toLowerCase()}`
  address.pathname = `/${name}`
  await query(url, `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`)
  t.after(() => query(url, `DROP DATABASE ${name} WITH (FORCE)`))
  return address.href
}

/** Goes back to an older schema. */
const TO_VERSION_5 = `DROP TABLE transaction_keys; ALTER TABLE tenants ADD UNIQUE (name);
  ALTER TABLE tenant_heads DROP COLUMN access_revision, DROP COLUMN access;
  ALTER TABLE sessions DROP COLUMN proof;
  ALTER TABLE applications DROP COLUMN allowed_origins;
  UPDATE schema_version SET version = 5`

test('servers that start at the same time after an upgrade migrate once, where advisory locks have no effect, too', async (t) => {
  const url = await freshDatabase()
  const name = new URL(url).pathname.slice(1)
  await query(
    url,
    `CREATE SCHEMA first;
     CREATE FUNCTION first.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE sql AS '';
     ALTER DATABASE ${name} SET search_path = first, pg_catalog`,
  )
  await (await PostgresStore.open({ url })).close()
  await query(url, TO_VERSION_5)
  const stores = await Promise.all(range(0, 4).map(() => openPatiently(url)))
  t.after(() => Promise.all(stores.map((it) => it.close())))
  for (const it of stores) await it.check()
})

test('a transaction opened by the version before keys were noted is committed', async (t) => {
  const url = await freshDatabase()
  const store = await openPatiently(url)
  await succeed(store, TENANT, [begin(7), enlist(7), insert(token(1))])
  await store.close()
  await query(url, TO_VERSION_5)
  const later = await openPatiently(url)
  t.after(() => later.close())
  await succeed(later, TENANT, [end(7, 'committed')])
  assert.deepEqual(await later.tokens.find(TENANT, [token(1).id]), [token(1)])
})
