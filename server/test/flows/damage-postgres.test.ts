/** `symbolon verify` on PostgreSQL, beside a server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { PostgresStore } from '../../src/adapters/storage/postgres/store.ts'
import { eachKindVault } from '../damage/each-kind.ts'
import { damage } from '../kit/damage.ts'
import { openPatiently } from '../kit/postgres/patient-store.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { runSymbolon } from '../kit/running-vault.ts'

test('names every damaged value in a database that a server has open', async (t) => {
  const url = await freshDatabase()
  const { folder, tenantId, remove } = await eachKindVault(url)
  t.after(remove)
  const store: PostgresStore = await openPatiently(url)
  t.after(() => store.close())
  const where = ['--data-dir', folder, '--database-url', url]
  const intact = await runSymbolon(['verify', ...where])
  assert.deepEqual([intact.status, intact.err], [0, ''])
  assert.match(intact.out, /^\d+ values decrypted, 0 damaged\n$/)

  const damaged = await damage(store, tenantId, () => true)
  const { status, out } = await runSymbolon(['verify', '--json', '--tenant', tenantId, ...where])
  const lines = out
    .trim()
    .split('\n')
    .map((it) => JSON.parse(it) as Record<string, unknown>)
  assert.equal(status, 1)
  assert.deepEqual(
    lines
      .slice(0, -1)
      .map((it) => String(it['id']))
      .toSorted(),
    damaged.map((it) => it.row).toSorted(),
  )
  assert.equal(lines.at(-1)!['damaged'], damaged.length)
  assert.equal(new Set(lines.map((it) => it['kind'])).size, 11)
})

test('a database without a vault is refused, and stays empty', async (t) => {
  const url = await freshDatabase()
  const { status, err } = await runSymbolon(['verify', '--database-url', url])
  assert.equal(status, 1)
  assert.match(err, /nothing is set up in it; start the service once/)
  const client = new pg.Client(url)
  await client.connect()
  t.after(() => client.end())
  const { rows } = await client.query(
    "SELECT count(*) AS tables FROM information_schema.tables WHERE table_schema = 'public'",
  )
  assert.equal(Number(rows[0].tables), 0)
})
