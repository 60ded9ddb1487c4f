import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { CLEARED } from './clearing.ts'

test('of a deleted tenant every table with rows of tenants is cleared, but for its keys and its chain tip', () => {
  const schema = readFileSync(new URL('./schema.sql', import.meta.url), 'utf8')
  const tables = [...schema.matchAll(/^CREATE TABLE (\w+) \(\n {2}tenant uuid/gm)].map(
    (it) => it[1]!,
  )
  // Keys go first, with the tenant itself; the chain tip goes last.
  const others = ['tenant_heads', 'tenant_keys']
  const cleared = CLEARED.map((it) => it.table)
  assert.deepEqual(tables.toSorted(), [...cleared, ...others].toSorted())
})
