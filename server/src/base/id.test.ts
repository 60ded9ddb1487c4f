import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { ID_RANDOM_BYTES, idOf, isUuid } from './id.ts'

const time = fc.nat({ max: 2 ** 48 - 1 })
const random = fc.uint8Array({ minLength: ID_RANDOM_BYTES, maxLength: ID_RANDOM_BYTES })

describe('idOf()', () => {
  test('says the time in its first 48 bits, and looks like version 4', () => {
    fc.assert(
      fc.property(fc.array(time, { minLength: 1 }), random, (times, bytes) => {
        for (const now of times) {
          const id = idOf(now, bytes)
          assert.ok(isUuid(id))
          assert.equal(parseInt(id.replaceAll('-', '').slice(0, 12), 16), now)
          assert.match(id, /^.{14}4.{4}[89ab]/)
        }
      }),
    )
  })

  test('leaves 74 bits to chance, of which each counts', () => {
    const ids = new Set([idOf(0, new Uint8Array(ID_RANDOM_BYTES))])
    for (let bit = 0; bit < ID_RANDOM_BYTES * 8; bit++) {
      const bytes = new Uint8Array(ID_RANDOM_BYTES)
      bytes[bit >> 3] = 1 << (bit & 7)
      ids.add(idOf(0, bytes))
    }
    assert.equal(ids.size, 75)
  })

  test('takes its share of what several ids are made of', () => {
    fc.assert(
      fc.property(time, random, random, (now, one, other) => {
        const both = Uint8Array.from([...one, ...other])
        assert.equal(idOf(now, both, ID_RANDOM_BYTES), idOf(now, other))
        assert.equal(idOf(now, both), idOf(now, one))
      }),
    )
  })
})
