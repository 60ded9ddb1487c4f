import assert from 'node:assert/strict'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { freshFolder, openStore } from '../../../../test/kit/sqlite-kit.ts'
import { openSqliteInspection, quickCheck, Uninspectable } from './inspection.ts'

test('an inspection reads tenants and audit logs from one snapshot, whatever is written meanwhile', async (t) => {
  const folder = freshFolder(t)
  await openStore(t, { folder })
  const { readers, close } = openSqliteInspection(folder)
  t.after(close)
  const { tenants } = readers()
  assert.equal(await tenants.count(), 0)
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec(`INSERT INTO tenants (id, name, plan, settings, created_by, created_at)
    VALUES (x'00', 'late', 'standard', '{}', x'00', 0)`)
  db.close()
  assert.equal(await tenants.count(), 0)
  const later = openSqliteInspection(folder)
  t.after(later.close)
  assert.equal(await later.readers().tenants.count(), 1)
})

test('a file that is not a database is damaged, and a database whose log has no index is not', async (t) => {
  const folder = freshFolder(t)
  const path = join(folder, 'symbolon.db')
  writeFileSync(path, 'something else, of more than a hundred bytes: '.repeat(10))
  assert.throws(
    () => openSqliteInspection(folder),
    (error) => error instanceof Uninspectable && error.damaged,
  )
  writeFileSync(`${path}-wal`, 'commits')
  assert.throws(
    () => openSqliteInspection(folder),
    (error) => error instanceof Uninspectable && !error.damaged,
  )
  assert.ok(!existsSync(`${path}-shm`))
  rmSync(`${path}-wal`)
})

test('the quick check ends at its timeout, and leaves nothing', async (t) => {
  const folder = freshFolder(t)
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec('CREATE TABLE a (b)')
  db.close()
  assert.equal(await quickCheck(folder, 1), null)
  assert.equal(await quickCheck(folder, 10 * 60_000), 'ok')
  assert.ok(!existsSync(join(folder, 'symbolon.db-wal')))
})
