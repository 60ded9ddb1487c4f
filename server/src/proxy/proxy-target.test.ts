import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { HEADER_BYTES_MAX } from '../base/limits.ts'
import { takeKey } from './proxy-target.ts'

const NAME = 'bt-proxy-key'

const named = (...ways: string[]): fc.Arbitrary<string> =>
  fc
    .array(fc.constantFrom(...ways), { minLength: NAME.length, maxLength: NAME.length })
    .map((chosen) => chosen.map((way, n) => written(NAME[n]!, way)).join(''))

/** Generates spellings of the name, and near misses. */
const name = fc.oneof(
  named('as it is', 'as it is', 'lower', 'upper'),
  named('as it is', 'lower', 'upper', 'capital', 'left out'),
  fc.constantFrom('', 'a', NAME),
)

const item = fc
  .tuple(
    fc.constantFrom('', '', '?', '??', '=', '+', '%20', '%'),
    name,
    fc.constantFrom('', '', '+', '%00', '%', 's'),
    fc.constantFrom('', '=', '=k', '=a%20b+c', '=?', '==k', '=%ff'),
  )
  .map((parts) => parts.join(''))

describe('takeKey()', () => {
  test('finds the key that URLSearchParams would find in one of the items, and leaves the others', () => {
    fc.assert(
      fc.property(fc.array(item, { maxLength: 4 }), (items) => {
        const asked = `/below?${items.join('&')}`
        const isKey = (it: string): boolean => new URLSearchParams(it).has(NAME)
        const sent = items.join('&').split('&')
        const keys = sent.filter(isKey)
        if (keys.length > 1) {
          assert.throws(() => takeKey(asked), { code: 'query_invalid' })
        } else if (keys.length === 0) {
          assert.deepEqual(takeKey(asked), { targetBelowPath: asked, key: undefined })
        } else {
          const rest = sent.filter((it) => !isKey(it)).join('&')
          const targetBelowPath = rest === '' ? '/below' : `/below?${rest}`
          const key = new URLSearchParams(keys[0]).get(NAME)!
          assert.deepEqual(takeKey(asked), { targetBelowPath, key })
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test('parses no item but the key, however many there are', (t) => {
    const items = 'b&'.repeat(HEADER_BYTES_MAX / 2)
    const parsing = t.mock.method(globalThis, 'URLSearchParams')
    const splitting = t.mock.method(String.prototype, 'split')
    takeKey(`?${items}`)
    assert.deepEqual([parsing.mock.callCount(), splitting.mock.callCount()], [0, 0])
    takeKey(`?${items}${NAME}=k&${items}`)
    assert.deepEqual([parsing.mock.callCount(), splitting.mock.callCount()], [1, 1])
  })
})

function written(char: string, way: string): string {
  const code = char.charCodeAt(0).toString(16)
  if (way === 'lower') return `%${code}`
  if (way === 'upper') return `%${code.toUpperCase()}`
  if (way === 'capital') return char.toUpperCase()
  return way === 'left out' ? '' : char
}
