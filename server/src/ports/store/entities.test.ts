import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import {
  descriptionOf,
  ENTITY_NAMES,
  ENVELOPE_TABLES,
  sealContextOf,
  SEALED_NAMES,
  tenantColumnOf,
  type EntityName,
} from './entities.ts'
import {
  columnOf,
  columnsOf,
  encryptedColumnsOf,
  keyColumnsOf,
  ownedBy,
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

    test('owns no rows if another entity owns its own', () => {
      // A deletion removes the rows of one generation.
      if (parent?.owns === true) assert.deepEqual(ownedBy(name), [])
    })

    test('names the type of associated data if it has ciphertexts, and not otherwise', () => {
      assert.equal(sealedAs !== undefined, encryptedColumnsOf(name).length > 0)
    })

    test('identifies a row by one column if it has ciphertexts', () => {
      // Rotation and verification continue after the row that they read last, and associated data has one id.
      if (sealedAs !== undefined) assert.ok(key.length <= 1)
    })
  })
}

test('a damaged row can be deleted by its id, unless its removal is an operation of its own', () => {
  const own = ['answer', 'job', 'callback_secret']
  for (const name of SEALED_NAMES.filter((it) => !own.includes(it))) {
    const { changes, key } = descriptionOf(name)
    assert.deepEqual(changes.delete?.by ?? (changes.delete && key), ['id'], name)
  }
})

test('no two encrypted columns have the same name in a report', () => {
  const values = ENTITY_NAMES.flatMap(encryptedColumnsOf).map((it) => it.encrypted!.value)
  assert.deepEqual(values, [...new Set(values)])
})

test('the ciphertexts of earlier versions have the associated data that they were sealed with', () => {
  const contexts = SEALED_NAMES.flatMap((name) =>
    encryptedColumnsOf(name).map((it) => {
      const { type, part, containers } = sealContextOf(name, it.encrypted!.part, 'id')
      assert.deepEqual(containers, [])
      return [`${descriptionOf(name).table}.${it.name}`, `${type} ${part}`]
    }),
  )
  const found = Object.fromEntries(contexts) as Record<string, string>
  for (const [column, context] of Object.entries(SEALED_BEFORE)) {
    assert.equal(found[column], context, column)
  }
})

test('a verification that an earlier version began skips no table', () => {
  assert.deepEqual(ENVELOPE_TABLES.slice(0, READ_BEFORE.length), READ_BEFORE)
})

/** The type and part in the associated data of each column. */
const SEALED_BEFORE: Readonly<Record<string, string>> = {
  'answers.body': 'answer answer',
  'proxies.terms': 'proxy terms',
  'reactors.terms': 'reactor terms',
  'jobs.terms': 'job terms',
  'jobs.result': 'job result',
  'callback_secrets.secrets': 'callback secrets',
}

/** The first tables with ciphertexts, in order; others go after them. */
const READ_BEFORE = [
  'tokens',
  'pending',
  'answers',
  'proxies',
  'reactors',
  'jobs',
  'callback_secrets',
]

/** Returns the names of a table's columns. */
function columnsIn(schema: string, table: string): string[] {
  const [, body] = new RegExp(`^CREATE TABLE ${table} \\((.*?)\\n\\)`, 'ms').exec(schema)!
  const lines = body!.replaceAll(/--[^\n]*/g, '').split(/,(?![^(]*\))/)
  return lines
    .map((it) => it.trim().split(/\s+/)[0]!)
    .filter((it) => /^[a-z]/.test(it) && it !== '')
}
