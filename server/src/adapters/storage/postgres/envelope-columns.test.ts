import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ENVELOPE_TABLES } from '../../../ports/store/entities.ts'
import { SEALED } from './envelope-columns.ts'

/** Columns of bytes that hold no envelopes: hashes, keys wrapped by the root key, the audit log. */
const NOT_SEALED = [
  'application_keys.hash',
  'installation.root_key_check',
  'pending.indexes',
  'proxies.hash',
  'record.entry',
  'record.hash',
  'record_parked.entry',
  'sessions.hash',
  'sessions.nonce_hash',
  'sessions.proof',
  'tenant_heads.hash',
  'tenant_heads.removed_hash',
  'tenant_heads.sealed_from',
  'tenant_keys.wrapped',
  'token_indexes.hash',
  'tokens.indexes',
]

test('every column of bytes is one that rotation looks through, or known to hold no envelope', () => {
  const schema = readFileSync(new URL('./schema.sql', import.meta.url), 'utf8')
  const columns = schema
    .split(/^CREATE TABLE /m)
    .slice(1)
    .flatMap((table) =>
      [...table.matchAll(/^ {2}(\w+) bytea/gm)].map((it) => `${table.split(' ')[0]}.${it[1]}`),
    )
  const sealed = SEALED.flatMap((it) =>
    Object.keys(it.columns).map((column) => `${it.table}.${column}`),
  )
  assert.deepEqual(columns.toSorted(), [...sealed, ...NOT_SEALED].toSorted())
  assert.deepEqual(
    SEALED.map((it) => it.table),
    ENVELOPE_TABLES,
  )
})
