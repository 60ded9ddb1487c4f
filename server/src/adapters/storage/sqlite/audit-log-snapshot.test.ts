import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import { openSqliteAuditLog } from './audit-log-snapshot.ts'

/** Returns a data folder whose database was made by these statements. */
function folderWith(t: TestContext, statements: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-snapshot-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec(`PRAGMA journal_mode = WAL; ${statements}`)
  db.close()
  return folder
}

test('a database whose first start did not finish is distinguished from one without an audit log', (t) => {
  assert.throws(() => openSqliteAuditLog(folderWith(t, '')), /its first start did not finish/)
  const older = folderWith(t, 'CREATE TABLE tenants (id TEXT)')
  assert.throws(() => openSqliteAuditLog(older), /a program that kept no audit log/)
})
