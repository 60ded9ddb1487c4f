import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { CLEARED } from './clearing.ts'
import { migrate } from './migrate.ts'

test('every table with rows of a tenant is cleared when that is deleted', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  const tables = db
    .prepare(
      `SELECT m.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
       WHERE m.type = 'table' AND c.name = 'tenant'`,
    )
    .all()
    .map((row) => String(row.name))
  // The keys are deleted with the tenant itself.
  const known = [...CLEARED.map((it): string => it.table), 'tenant_keys']
  assert.deepEqual(tables.toSorted(), known.toSorted())
  db.close()
})
