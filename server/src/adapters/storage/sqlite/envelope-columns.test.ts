import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { ENVELOPE_TABLES } from '../../../ports/store/entities.ts'
import { SEALED } from './envelope-columns.ts'
import { migrate } from './migrate.ts'

/** Bytes that are no envelopes: hashes, internal ids, keys wrapped by the root key, the audit log. */
const NOT_SEALED = [
  'application_keys.hash',
  'installation.root_key_check',
  'pending.indexes',
  'pending.serial',
  'proxies.hash',
  'record.earlier',
  'record.entry',
  'record.hash',
  'record_heads.hash',
  'record_heads.removed_hash',
  'record_parked.entry',
  'sessions.hash',
  'sessions.nonce_hash',
  'sessions.proof',
  'tenant_keys.wrapped',
  'token_blocks.first',
  'token_indexes.hash',
  'token_indexes.serial',
  'tokens.indexes',
  'tokens.serial',
  'units.first_serial',
  'units.last_serial',
]

test('every column of bytes is one that rotation looks through, or known to hold no envelope', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  const columns = db
    .prepare(
      `SELECT m.name || '.' || c.name AS name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
       WHERE m.type = 'table' AND c.type = 'BLOB'`,
    )
    .all()
    .map((row) => String(row['name']))
  const sealed = SEALED.flatMap((it) =>
    Object.keys(it.columns).map((column) => `${it.table}.${column}`),
  )
  assert.deepEqual(columns.toSorted(), [...sealed, ...NOT_SEALED].toSorted())
  assert.deepEqual(
    SEALED.map((it) => it.table),
    ENVELOPE_TABLES,
  )
  db.close()
})

test('what is sealed is looked through in the order of a key, without sorting', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  for (const it of SEALED) {
    const sql = `EXPLAIN QUERY PLAN SELECT 1 FROM ${it.from} WHERE it.tenant = ?1 AND it.${it.row} > ?2
      ORDER BY it.${it.row} LIMIT ?3`
    const plan = db.prepare(sql).all(1, 1, 1)
    const steps = plan.map((row) => String(row['detail'])).join('; ')
    assert.doesNotMatch(steps, /TEMP B-TREE|SCAN/, it.table)
  }
  db.close()
})
