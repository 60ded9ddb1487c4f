import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../../test/kit/fast-check.ts'
import { atTheEnd, freshDatabase } from '../../../../test/kit/postgres/test-database.ts'
import { arrayOf, type Scalar } from './binary-array.ts'
import { connectionSettings } from './connection-settings.ts'
import { bounded, connectedTo } from './connection.ts'

const client = await connectedTo(bounded(connectionSettings(await freshDatabase())))
atTheEnd(() => client.end())

async function received(type: string, array: unknown): Promise<unknown[]> {
  const { rows } = await client.query<{ it: unknown }>(
    `SELECT it FROM unnest($1::${type}[]) AS it`,
    [array],
  )
  return rows.map((row) => (Buffer.isBuffer(row.it) ? new Uint8Array(row.it) : row.it))
}

const VALUES: Readonly<Record<string, fc.Arbitrary<Scalar>>> = {
  boolean: fc.boolean(),
  bytea: fc.uint8Array({ maxLength: 400 }),
  bigint: fc.maxSafeInteger(),
  integer: fc.integer(),
  text: fc.string({ unit: 'binary' }).map((it) => it.replaceAll('\0', '')),
  uuid: fc.uuid(),
}

describe('arrayOf()', () => {
  for (const [type, value] of Object.entries(VALUES)) {
    test(`gives the database an array of ${type}, nulls included, value by value`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.option(value), { minLength: 1 }), async (values) => {
          const array = arrayOf(type, values)
          const expected = values.every((it) => it === null) ? [] : values
          assert.deepEqual(await received(type, array), expected)
          assert.ok(expected.length === 0 || Buffer.isBuffer(array))
        }),
      )
    })
  }

  test('gives a value of another type as text, so that the database says what is wrong with it', async () => {
    for (const [type, value, said] of [
      ['uuid', 'card', /invalid input syntax for type uuid: "card"/],
      ['integer', 2 ** 31, /value "2147483648" is out of range for type integer/],
      ['bigint', 1.5, /invalid input syntax for type bigint: "1.5"/],
      ['boolean', 2, /invalid input syntax for type boolean: "2"/],
    ] as const) {
      await assert.rejects(received(type, arrayOf(type, [null, value])), said)
    }
  })

  test('takes what only looks different: a uuid in capitals, a number in words', async () => {
    const uuid = '0197A3C1-8E2F-4B1A-9C3D-5E6F7A8B9C0D'
    assert.deepEqual(await received('uuid', arrayOf('uuid', [uuid])), [uuid.toLowerCase()])
    assert.deepEqual(await received('bigint', arrayOf('bigint', ['12'])), [12])
  })
})
