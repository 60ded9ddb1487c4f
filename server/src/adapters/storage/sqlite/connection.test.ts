import assert from 'node:assert/strict'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { Change } from '../../../ports/change.ts'
import type { StoredApplication } from '../../../ports/stored.ts'
import { expectPragma, openConnection } from './connection.ts'
import { TENANT, freshFolder, openStore } from '../../../../test/kit/sqlite-kit.ts'

/** The value of `PRAGMA temp_store`. */
const MEMORY = 2

test('openConnection() flushes every commit and leaves no trace, whether it writes or reads', (t) => {
  const path = join(freshFolder(t), 'a.db')
  for (const readOnly of [false, true]) {
    const db = openConnection(path, { readOnly, cacheKiB: 100 })
    assert.equal(db.prepare('PRAGMA synchronous').get()?.synchronous, 2)
    assert.equal(db.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal')
    assert.equal(db.prepare('PRAGMA secure_delete').get()?.secure_delete, 1)
    assert.equal(db.prepare('PRAGMA foreign_keys').get()?.foreign_keys, 1)
    assert.equal(db.prepare('PRAGMA trusted_schema').get()?.trusted_schema, 0)
    assert.equal(db.prepare('PRAGMA temp_store').get()?.temp_store, MEMORY)
    assert.throws(() => db.enableLoadExtension(true), /disabled at database creation/)
    if (readOnly) assert.throws(() => db.exec('CREATE TABLE t (a)'), /readonly/)
    else db.exec('CREATE TABLE before_reading (a)')
    db.close()
  }
})

test('openConnection() refuses a database that cannot be durable', () => {
  // A database in memory never has a write-ahead log.
  assert.throws(() => openConnection(':memory:', { cacheKiB: 100 }), /journal_mode is memory/)
})

test('expectPragma() refuses a weaker setting', () => {
  const db = new DatabaseSync(':memory:')
  db.exec('PRAGMA synchronous = NORMAL')
  assert.throws(() => expectPragma(db, 'synchronous', 2), /synchronous is 1, not 2/)
  db.close()
})

test('what was deleted is not in the files any more', async (t) => {
  const folder = freshFolder(t)
  const canary = 'canary-5f3759df'
  const application: StoredApplication = {
    id: TENANT,
    name: canary,
    type: 'private',
    permissions: [],
    rules: [],
    destinations: null,
    allowedOrigins: null,
    expiresAt: null,
    createdBy: TENANT,
    createdAt: 0,
    modifiedBy: null,
    modifiedAt: null,
  }
  const store = await openStore(t, { folder })
  await store.commit(TENANT, [
    { kind: 'insert', entity: 'application', row: application },
    { kind: 'leave-access-state' },
  ])
  await store.close()
  assert.equal(occursIn(folder, canary), true)

  const again = await openStore(t, { folder })
  await again.commit(TENANT, [
    { kind: 'delete', entity: 'application', id: TENANT },
    { kind: 'leave-access-state' },
  ])
  await again.close()
  assert.equal(occursIn(folder, canary), false)
})

test('keys that a commit destroys leave the write-ahead log with the next sweep, whatever else it changes', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  const notice = (at: number): Change => {
    return { kind: 'put-notice', id: TENANT, notice: { text: '{}', at } }
  }
  const destroy: Change = { kind: 'destroy-tenant-keys', below: 2 }
  for (const changes of [
    [destroy, notice(1)],
    [notice(2), destroy],
  ]) {
    assert.equal(await store.commit(TENANT, changes), null)
    assert.ok(statSync(join(folder, 'symbolon.db-wal')).size > 0)
    assert.equal(await store.sweep(0), false)
    assert.equal(statSync(join(folder, 'symbolon.db-wal')).size, 0)
  }
})

function occursIn(folder: string, text: string): boolean {
  return readdirSync(folder).some((file) => readFileSync(join(folder, file)).includes(text))
}
