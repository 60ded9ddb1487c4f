import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { migrate, schemaOf } from './migrate.ts'
import { SqliteStore } from './sqlite-store.ts'
import { freshFolder, openStore } from '../../../test/kit/sqlite-kit.ts'

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

test('open() refuses a database that is newer than the program, and lets go of it', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await store.close()
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const version = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  db.exec('PRAGMA user_version = 1000')
  await assert.rejects(SqliteStore.open({ folder }), /version 1000, this program knows/)
  db.exec(`PRAGMA user_version = ${version}`)
  db.close()
  await openStore(t, { folder })
})
