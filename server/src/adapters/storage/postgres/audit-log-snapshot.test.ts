import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import { openPostgresAuditLog } from './audit-log-snapshot.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'

test('a connection that is lost between two questions fails the next one, and nothing else', async () => {
  const url = await freshDatabase()
  const store = await openPatiently(url)
  await store.close()
  const { auditLog, close } = await openPostgresAuditLog(url)
  assert.deepEqual(await auditLog.tenantIds('all'), [])
  const others = 'datname = current_database() AND pid <> pg_backend_pid()'
  await query(url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`)
  const left = `SELECT 1 FROM pg_stat_activity WHERE ${others}`
  while ((await query(url, left)).rows.length > 0) await sleep(1)
  await assert.rejects(auditLog.tenantIds('all'), /connection/i)
  await close()
})

test('a database that cannot be reached is refused in a sentence', async () => {
  const opened = openPostgresAuditLog('postgres://symbolon@localhost:1/symbolon')
  await assert.rejects(opened, { message: 'Cannot reach the database' })
})
