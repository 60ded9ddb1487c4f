import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { ID_RANDOM_BYTES, idOf, isUuid, sortRandom } from './id.ts'

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

describe('sortRandom()', () => {
  const many = fc.array(random, { maxLength: 200 })

  test('brings ids into their order, as far as the first 26 bits of chance tell', () => {
    fc.assert(
      fc.property(time, many, (now, portions) => {
        const leading = idsOf(now, sorted(portions)).map((it) => it.slice(0, 23))
        assert.deepEqual(leading, leading.toSorted())
      }),
    )
  })

  test('leaves to chance what was left to it', () => {
    fc.assert(
      fc.property(many, (portions) => {
        const [before, after] = [
          idsOf(
            0,
            portions.flatMap((it) => [...it]),
          ),
          idsOf(0, sorted(portions)),
        ]
        const leading = (ids: string[]): string[] => ids.map((it) => it.slice(0, 23)).toSorted()
        assert.deepEqual(leading(after), leading(before))
        assert.deepEqual(
          after.map((it) => it.slice(23)),
          before.map((it) => it.slice(23)),
        )
      }),
    )
  })

  function sorted(portions: readonly Uint8Array[]): Uint8Array {
    const all = Uint8Array.from(portions.flatMap((it) => [...it]))
    sortRandom(all)
    return all
  }

  function idsOf(now: number, bytes: ArrayLike<number>): string[] {
    return Array.from({ length: bytes.length / ID_RANDOM_BYTES }, (_, n) =>
      idOf(now, Uint8Array.from(bytes), n * ID_RANDOM_BYTES),
    )
  }
})
