import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { withAbaDigit, withLuhnDigit } from '../../../test/kit/check-digits.ts'
import {
  accountNumberFault,
  cardNumberFault,
  passesAba,
  passesLuhn,
  routingNumberFault,
} from './checks.ts'

const digits = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.nat(9).map(String), minLength, maxLength })

/** Returns every text that differs from `text` in one digit. */
function oneDigitOff(text: string): string[] {
  return Array.from(text).flatMap((digit, at) =>
    Array.from('0123456789')
      .filter((it) => it !== digit)
      .map((it) => text.slice(0, at) + it + text.slice(at + 1)),
  )
}

/** Returns every text with two different adjacent digits swapped. */
function swapped(text: string): string[] {
  return Array.from(text.slice(1), (_, at) => {
    return text.slice(0, at) + text[at + 1]! + text[at]! + text.slice(at + 2)
  }).filter((it) => it !== text)
}

describe('passesLuhn()', () => {
  test('accepts a number with its check digit, and none with one digit changed', () => {
    fc.assert(
      fc.property(digits(1, 18).map(withLuhnDigit), (number) => {
        assert.equal(passesLuhn(number), true)
        for (const it of oneDigitOff(number)) assert.equal(passesLuhn(it), false, it)
      }),
    )
  })

  test('accepts no two neighbours that changed places, but for 09 and 90', () => {
    fc.assert(
      fc.property(digits(1, 18).map(withLuhnDigit), (number) => {
        for (const it of swapped(number)) {
          const at = Array.from(it).findIndex((digit, place) => digit !== number[place])
          const pair = [number.slice(at, at + 2), it.slice(at, at + 2)].toSorted().join()
          assert.equal(passesLuhn(it), pair === '09,90', it)
        }
      }),
    )
  })

  for (const number of [
    '4242424242424242',
    '5555555555554444',
    '378282246310005',
    '79927398713',
    '0',
  ]) {
    test(`accepts ${number}`, () => assert.equal(passesLuhn(number), true))
  }
})

describe('passesAba()', () => {
  test('accepts a number with its check digit, and none with one digit changed', () => {
    fc.assert(
      fc.property(digits(8, 8).map(withAbaDigit), (number) => {
        assert.equal(passesAba(number), true)
        for (const it of oneDigitOff(number)) assert.equal(passesAba(it), false, it)
      }),
    )
  })

  test('accepts no two neighbours that changed places, unless they differ by five', () => {
    fc.assert(
      fc.property(digits(8, 8).map(withAbaDigit), (number) => {
        for (const it of swapped(number)) {
          const at = Array.from(it).findIndex((digit, place) => digit !== number[place])
          const apart = Math.abs(Number(it[at]) - Number(it[at + 1]))
          assert.equal(passesAba(it), apart === 5, it)
        }
      }),
    )
  })

  for (const number of ['021000021', '011401533', '122105155']) {
    test(`accepts ${number}`, () => assert.equal(passesAba(number), true))
  }

  for (const number of ['', '0', '00000000', '0000000000']) {
    test(`refuses ${number || 'nothing'}: it has not nine digits`, () => {
      assert.equal(passesAba(number), false)
    })
  }
})

describe('cardNumberFault(), routingNumberFault() and accountNumberFault()', () => {
  test('find fault with everything that is no text of ASCII digits, and do not repeat it', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        if (typeof value === 'string' && /^\d+$/.test(value)) return
        for (const fault of [
          cardNumberFault(value),
          routingNumberFault(value),
          accountNumberFault(value, 1),
        ]) {
          assert.notEqual(fault, null)
        }
      }),
    )
    for (const value of [
      '4242-4242-4242-4242',
      '４２４２４２４２４２４２４２４２',
      '4242424242424242\n',
    ]) {
      for (const fault of [
        cardNumberFault(value),
        routingNumberFault(value),
        accountNumberFault(value, 1),
      ]) {
        assert.ok(!fault!.includes('4242'))
      }
    }
  })

  test('find fault with other lengths', () => {
    for (let length = 0; length <= 21; length++) {
      const card = length < 2 ? '1'.repeat(length) : withLuhnDigit('4'.repeat(length - 1))
      assert.equal(cardNumberFault(card) === null, length >= 13 && length <= 19, `${length}`)
      assert.equal(accountNumberFault('1'.repeat(length), 3) === null, length >= 3 && length <= 17)
      assert.equal(accountNumberFault('1'.repeat(length), 1) === null, length >= 1 && length <= 17)
      assert.equal(routingNumberFault('0'.repeat(length)) === null, length === 9)
    }
  })
})
