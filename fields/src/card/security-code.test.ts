import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../server/test/kit/fast-check.ts'
import { BRANDS } from './brands.ts'
import { readCode } from './security-code.ts'

test('readCode() wants as many digits as the brand has', () => {
  for (const [text, brand, error] of [
    ['', null, 'missing'],
    ['12', null, 'incomplete'],
    ['123', null, null],
    ['1234', null, null],
    ['', 'visa', 'missing'],
    ['12', 'visa', 'incomplete'],
    ['123', 'visa', null],
    ['1234', 'visa', 'invalid'],
    ['123', 'american-express', 'incomplete'],
    ['1234', 'american-express', null],
    ['abc', 'visa', 'missing'],
  ] as const) {
    assert.equal(readCode(text, brand).error, error, `${text} of ${brand}`)
  }
})

test('readCode() reads digits of other scripts, and leading zeros', () => {
  assert.equal(readCode('٠١٢', null).digits, '012')
  assert.equal(readCode(' 0 0 7 ', null).digits, '007')
})

test('readCode() never passes a code that the vault refuses', () => {
  fc.assert(
    fc.property(text, fc.option(fc.constantFrom(...BRANDS)), (text, brand) => {
      const { digits, complete } = readCode(text, brand)
      assert.equal(complete && !/^\d{3,4}$/.test(digits), false)
    }),
  )
})

const text = fc.string({ unit: fc.constantFrom('0', '7', '٣', '½', '-', 'x'), maxLength: 8 })
