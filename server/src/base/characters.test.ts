import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { characterAt, charactersIn, isLongerThan } from './characters.ts'

const HALF = String.fromCharCode(0xd800)

test('a length is that in code points, for every text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.nat(45), (text, max) => {
      const count = [...text].length
      assert.equal(charactersIn(text), count)
      assert.equal(isLongerThan(text, max), count > max)
    }),
  )
  assert.equal(charactersIn(`a${HALF}\u{1f600}${HALF}`), 4)
})

test('a position is that of a code point, from 1', () => {
  const text = `a\u{1f600}b${HALF}c`
  assert.deepEqual(
    [0, 1, 3, 4, 5].map((at) => characterAt(text, at)),
    [1, 2, 3, 4, 5],
  )
})
