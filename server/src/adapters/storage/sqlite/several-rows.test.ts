import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import * as fc from '../../../../test/kit/fast-check.ts'
import type { SqliteValue } from './batch.ts'
import { ROWS_AT_ONCE, SeveralRows } from './several-rows.ts'

const SHARED = Uint8Array.of(1, 2, 3)
const value = fc.constantFrom<SqliteValue>(null, 0, 1.5, '', 'text', SHARED, Uint8Array.of(1, 2, 3))

const INSERT = {
  sql: 'INSERT INTO things (a, b, c, d) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
  params: ['text', 'bytes', 'integer', 'text'],
} as const

function things(): DatabaseSync {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE things (id INTEGER PRIMARY KEY, a ANY, b ANY UNIQUE, c ANY, d ANY) STRICT')
  return db
}

function storedIn(db: DatabaseSync): unknown[] {
  return db.prepare('SELECT a, b, c, d FROM things ORDER BY id').all()
}

test('SeveralRows inserts what rows one by one would, whatever they have in common', () => {
  const common = fc.tuple(value, value)
  const rows = fc.array(fc.record({ own: fc.tuple(value, value), apart: fc.option(common) }), {
    minLength: ROWS_AT_ONCE,
    maxLength: ROWS_AT_ONCE,
  })
  fc.assert(
    fc.property(common, rows, fc.boolean(), (shared, chosen, alike) => {
      const values = chosen.map(({ own: [b, d], apart }): SqliteValue[] => {
        const [a, c] = alike ? shared : (apart ?? shared)
        return [a, b, c, d]
      })
      const [together, single] = [things(), things()]
      const inserted = new SeveralRows(together, INSERT, [1, 3]).run(values.flat())
      const one = single.prepare(INSERT.sql)
      for (const it of values) one.run(...it)
      assert.deepEqual(storedIn(together), storedIn(single))
      assert.equal(inserted, storedIn(single).length)
    }),
  )
})
