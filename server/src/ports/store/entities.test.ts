import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { descriptionOf, ENTITY_NAMES, tenantColumnOf, type EntityName } from './entities.ts'
import {
  columnOf,
  columnsOf,
  encryptedColumnsOf,
  keyColumnsOf,
  parentOf,
} from './entity-columns.ts'

for (const name of ENTITY_NAMES) {
  describe(`the description of ${name}`, () => {
    const { changes, expires, key, parent, sealedAs } = descriptionOf(name)

    for (const database of ['sqlite', 'postgres']) {
      test(`has the columns that its table has on ${database}`, () => {
        const schema = new URL(`../../adapters/storage/${database}/schema.sql`, import.meta.url)
        const described = columnsOf(name).map((it) => it.name)
        const tenant = tenantColumnOf(name)
        assert.deepEqual(
          columnsIn(readFileSync(schema, 'utf8'), descriptionOf(name).table).toSorted(),
          [...new Set([tenant, ...described])].toSorted(),
        )
      })
    }

    test('names members that it has', () => {
      for (const it of [...key, ...(changes.delete?.by ?? []), ...(parent?.members ?? [])]) {
        assert.equal(columnOf(name, it).member, it)
      }
      if (expires === undefined) return
      // New rows expire old ones by the time they are created.
      for (const it of [expires, 'createdAt']) assert.equal(columnOf(name, it).kind, 'number')
    })

    test('names a row of its parent by all of its key', () => {
      if (parent === undefined) return
      const keyOfParent = keyColumnsOf(parent.entity as EntityName)
      assert.equal(parent.members.length, keyOfParent.length)
      assert.deepEqual(
        parentOf(name)!.key.map(({ by }) => by.kind),
        keyOfParent.map((it) => it.kind),
      )
    })

    test('names the type of associated data if it has ciphertexts, and not otherwise', () => {
      assert.equal(sealedAs !== undefined, encryptedColumnsOf(name).length > 0)
    })
  })
}

test('no two encrypted columns have the same name in a report', () => {
  const values = ENTITY_NAMES.flatMap(encryptedColumnsOf).map((it) => it.encrypted!.value)
  assert.deepEqual(values, [...new Set(values)])
})

/** Returns the names of a table's columns. */
function columnsIn(schema: string, table: string): string[] {
  const [, body] = new RegExp(`^CREATE TABLE ${table} \\((.*?)\\n\\)`, 'ms').exec(schema)!
  const lines = body!.replaceAll(/--[^\n]*/g, '').split(/,(?![^(]*\))/)
  return lines
    .map((it) => it.trim().split(/\s+/)[0]!)
    .filter((it) => /^[a-z]/.test(it) && it !== '')
}
