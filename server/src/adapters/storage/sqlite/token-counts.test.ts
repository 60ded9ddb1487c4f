import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import { freshFolder, insertNumbered, openStore, TENANT } from '../../../../test/kit/sqlite-kit.ts'
import { migrate } from './migrate.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** The stored sums, and the actual counts. */
const SUMS = `SELECT type, sum(count) AS count FROM token_counts
  WHERE unit = 0 OR NOT EXISTS (SELECT 1 FROM units WHERE id = unit) GROUP BY type HAVING sum(count) <> 0`
const ROWS = `SELECT type, count(*) AS count FROM tokens
  WHERE unit IS NULL OR NOT EXISTS (SELECT 1 FROM units WHERE id = unit) GROUP BY type`

test('sums stay right when tokens are deleted, modified, or change their day', async (t) => {
  const db = await withTokens(t)
  for (const sql of [
    'DELETE FROM tokens WHERE serial IN (SELECT serial FROM tokens LIMIT 100)',
    `UPDATE tokens SET modified_at = created_at + ${3 * DAY_MS} WHERE rowid_is_even(serial)`,
    "UPDATE tokens SET type = 'other' WHERE serial IN (SELECT serial FROM tokens LIMIT 7)",
    'DELETE FROM tokens WHERE modified_at IS NOT NULL',
    'DELETE FROM tokens',
  ]) {
    db.exec(sql)
    assert.deepEqual(db.prepare(SUMS).all(), db.prepare(ROWS).all(), sql)
    const negative = db.prepare('SELECT * FROM token_counts WHERE count < 0').all()
    assert.deepEqual(negative, [], sql)
  }
  assert.equal(db.prepare('SELECT count(*) AS count FROM tokens').get()?.count, 0)
})

test('a modified token counts on the day of its modification', async (t) => {
  const db = await withTokens(t)
  const days = () => db.prepare('SELECT day, count FROM token_counts WHERE count > 0').all()
  const [{ day, count }] = days() as [{ day: number; count: number }]
  db.exec(`UPDATE tokens SET modified_at = created_at + ${DAY_MS}
    WHERE serial = (SELECT min(serial) FROM tokens)`)
  assert.deepEqual(
    days().map((it) => ({ ...it })),
    [
      { day, count: count - 1 },
      { day: day + 1, count: 1 },
    ],
  )
})

test('what a staging batch holds is counted when it closes, and what was removed before is not', async (t) => {
  const db = await withTokens(t)
  const before = db.prepare(ROWS).all()
  db.exec(`INSERT INTO units (id, tenant, first_serial, last_serial) SELECT 999, tenant, serial, serial
    FROM tokens LIMIT 1`)
  db.exec('UPDATE tokens SET unit = 999 WHERE serial IN (SELECT serial FROM tokens LIMIT 50)')
  assert.deepEqual(db.prepare(SUMS).all(), db.prepare(ROWS).all())
  assert.notDeepEqual(db.prepare(SUMS).all(), before)
  db.exec(
    'DELETE FROM tokens WHERE serial IN (SELECT serial FROM tokens WHERE unit = 999 LIMIT 20)',
  )
  db.exec('DELETE FROM units WHERE id = 999')
  assert.deepEqual(db.prepare(SUMS).all(), db.prepare(ROWS).all())
  assert.deepEqual(db.prepare('SELECT 1 FROM token_counts WHERE unit <> 0').all(), [])
  db.exec('DELETE FROM tokens')
  assert.deepEqual(db.prepare(SUMS).all(), [])
})

test('a database from before is counted when it is migrated', async (t) => {
  const db = await withTokens(t)
  db.exec(`INSERT INTO units (id, tenant, first_serial, last_serial) SELECT 999, tenant, serial, serial
    FROM tokens LIMIT 1`)
  db.exec('UPDATE tokens SET unit = 999 WHERE serial IN (SELECT serial FROM tokens LIMIT 50)')
  for (const { type, name } of db
    .prepare("SELECT type, name FROM sqlite_schema WHERE name LIKE 'count_%'")
    .all()) {
    db.exec(`DROP ${String(type)} ${String(name)}`)
  }
  db.exec('ALTER TABLE record DROP COLUMN earlier; DROP TABLE jobs; DROP TABLE job_sizes')
  db.exec('DROP TABLE callback_secrets')
  db.exec('DROP TABLE transaction_keys')
  db.exec(
    'ALTER TABLE record_heads DROP COLUMN access_revision; ALTER TABLE record_heads DROP COLUMN access',
  )
  db.exec(
    'DROP TABLE token_counts; DROP TABLE deleted_tenants; DROP TABLE sessions; DROP TABLE notices',
  )
  db.exec(
    'DROP TABLE proxies; DROP TABLE reactors; ALTER TABLE applications DROP COLUMN destinations',
  )
  db.exec('ALTER TABLE applications DROP COLUMN allowed_origins')
  db.exec('PRAGMA user_version = 4')
  migrate(db)
  assert.deepEqual(db.prepare(SUMS).all(), db.prepare(ROWS).all())
  db.exec('DELETE FROM units')
  assert.deepEqual(db.prepare(SUMS).all(), db.prepare(ROWS).all())
})

/** Returns a database with tokens, some from a long list, closed by its store. */
async function withTokens(t: TestContext): Promise<DatabaseSync> {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  for (const change of [insertNumbered(0, 100), insertNumbered(1_000, 1_500)]) {
    assert.equal(await store.commit(TENANT, [change]), null)
  }
  await store.close()
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  t.after(() => db.close())
  db.function('rowid_is_even', (internalId) => Number((internalId as Uint8Array).at(-1)! % 2 === 0))
  assert.deepEqual(db.prepare(SUMS).all(), db.prepare(ROWS).all())
  assert.equal(db.prepare('SELECT count(*) AS count FROM tokens').get()?.count, 600)
  return db
}
