import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cardNumberFault } from '../../../server/src/tokens/types/checks.ts'
import { withLuhnDigit } from '../../../server/test/kit/check-digits.ts'
import * as fc from '../../../server/test/kit/fast-check.ts'
import { BRANDS } from './brands.ts'
import {
  binOf,
  digitsOf,
  groupDigits,
  lastFourOf,
  NUMBER_DIGITS_MAX,
  passesLuhn,
  readNumber,
} from './card-number.ts'

const VISA = '4242424242424242'

describe('readNumber()', () => {
  for (const [name, text] of [
    ['spaces', '4242 4242 4242 4242'],
    ['dashes', '4242-4242-4242-4242'],
    ['no-break spaces', '4242\u00a04242\u00a04242\u00a04242'],
    ['narrow no-break spaces and a line end', '4242\u202f4242\u202f4242\u202f4242\r\n'],
    ['full-width digits', '４２４２４２４２４２４２４２４２'],
    ['Arabic-Indic digits', '٤٢٤٢ ٤٢٤٢ ٤٢٤٢ ٤٢٤٢'],
    ['extended Arabic-Indic digits', '۴۲۴۲۴۲۴۲۴۲۴۲۴۲۴۲'],
    ['Devanagari digits', '४२४२४२४२४२४२४२४२'],
    ['marks of direction', '\u202a4242 4242 4242 4242\u202c'],
    ['words', 'Card: 4242.4242.4242.4242'],
  ] as const) {
    test(`takes a number pasted with ${name}`, () => {
      const { digits, complete, error } = readNumber(text)
      assert.deepEqual({ digits, complete, error }, { digits: VISA, complete: true, error: null })
    })
  }

  test('says what is wrong with it', () => {
    for (const [text, error] of [
      ['', 'missing'],
      [' - ', 'missing'],
      ['4', 'incomplete'],
      ['424242424242', 'incomplete'],
      // Visa has numbers of 13 and 16 digits, none between.
      ['42424242424242', 'incomplete'],
      ['424242424242424', 'incomplete'],
      ['4242424242424241', 'invalid'],
      ['42424242424242424', 'invalid'],
      ['37828224631000', 'incomplete'],
      ['378282246310005', null],
      ['378282246310006', 'invalid'],
      ['3782822463100055', 'invalid'],
      ['55555555555544', 'incomplete'],
      ['5555555555554444', null],
      ['55555555555544440', 'invalid'],
    ] as const) {
      assert.equal(readNumber(text).error, error, text)
    }
  })

  test('takes numbers of 13 to 19 digits of a brand that it does not know', () => {
    for (let length = 13; length <= 19; length++) {
      const number = withLuhnDigit('9'.repeat(length - 1))
      assert.deepEqual(readNumber(number).brands, [])
      assert.equal(readNumber(number).error, null, number)
    }
    assert.equal(readNumber(withLuhnDigit('9'.repeat(11))).error, 'incomplete')
  })

  test('takes numbers of every length that a brand has', () => {
    for (const [first, lengths] of [
      ['4', [13, 16, 18, 19]],
      ['36', [14, 16, 19]],
      ['6011', [16, 19]],
      ['62', [14, 16, 17, 18, 19]],
      ['67', [13, 16, 19]],
      ['622126', [16, 19]],
    ] as const) {
      for (const length of lengths) {
        const number = withLuhnDigit(first.padEnd(length - 1, '7'))
        assert.equal(readNumber(number).error, null, number)
      }
    }
  })

  test('counts it as full when no digit fits', () => {
    assert.equal(readNumber('5555555555554444').full, true)
    assert.equal(readNumber('555555555555444').full, false)
    assert.equal(readNumber(VISA).full, false)
    assert.equal(readNumber('4'.repeat(19)).full, true)
    assert.equal(readNumber('9'.repeat(16)).full, false)
  })

  test('refuses a brand that the shop does not take, as soon as it is certain', () => {
    const accepted = ['elo', 'mastercard'] as const
    assert.equal(readNumber('40117', accepted).error, 'incomplete')
    assert.equal(readNumber('401178', accepted).error, 'incomplete')
    assert.equal(readNumber('401179', ['visa']).error, 'brand-not-accepted')
    assert.equal(readNumber('424242', accepted).error, 'brand-not-accepted')
    assert.equal(readNumber(VISA, accepted).error, 'brand-not-accepted')
    assert.equal(readNumber('5555555555554444', accepted).error, null)
  })

  test('refuses a number of no known brand if the shop lists its brands', () => {
    const number = withLuhnDigit('9'.repeat(15))
    assert.equal(readNumber(number.slice(0, 8), ['visa']).error, 'incomplete')
    assert.equal(readNumber(number, ['visa']).error, 'brand-not-accepted')
    assert.equal(readNumber(number).error, null)
  })

  test('takes a co-branded card for either of its brands', () => {
    const number = withLuhnDigit('4571'.padEnd(15, '3'))
    assert.deepEqual(readNumber(number).brands, ['visa', 'dankort'])
    for (const brand of ['visa', 'dankort'] as const) {
      assert.equal(readNumber(number, [brand]).error, null)
      assert.deepEqual(readNumber(number, [brand]).choices, [brand])
    }
    assert.deepEqual(readNumber(number).choices, ['visa', 'dankort'])
    assert.deepEqual(readNumber(number, ['dankort', 'visa']).choices, ['visa', 'dankort'])
    assert.deepEqual(readNumber(number, ['mastercard']).choices, [])
    assert.equal(readNumber(number, ['mastercard']).error, 'brand-not-accepted')
  })

  test('never passes a number that the vault refuses, nor fails it for one more brand', () => {
    fc.assert(
      fc.property(typedNumber, fc.option(fc.subarray([...BRANDS])), (text, accepted) => {
        const { digits, complete } = readNumber(text, accepted)
        if (complete) assert.equal(cardNumberFault(digits), null)
        if (complete) assert.equal(readNumber(text).complete, true)
      }),
      { numRuns: 2000 },
    )
  })

  test('reads the same number from its groups', () => {
    fc.assert(
      fc.property(typedNumber, (text) => {
        const state = readNumber(text)
        assert.deepEqual(readNumber(groupDigits(state.digits)), state)
      }),
    )
  })
})

describe('groupDigits()', () => {
  test('groups as on the card', () => {
    assert.equal(groupDigits(VISA), '4242 4242 4242 4242')
    assert.equal(groupDigits('378282246310005'), '3782 822463 10005')
    assert.equal(groupDigits('37828'), '3782 8')
    assert.equal(groupDigits('36070500001020'), '3607 050000 1020')
    assert.equal(groupDigits('3607050000102000'), '3607 0500 0010 2000')
    assert.equal(groupDigits('6304000000000000000'), '6304 0000 0000 0000 000')
    assert.equal(groupDigits('3782822463100055'), '3782 822463 10005 5')
    assert.equal(groupDigits(''), '')
  })

  test('never changes digits, and groups grouped ones the same', () => {
    fc.assert(
      fc.property(digits(0, NUMBER_DIGITS_MAX), (it) => {
        const grouped = groupDigits(it)
        assert.equal(grouped.replaceAll(' ', ''), it)
        assert.doesNotMatch(grouped, /^ | $| {2}/)
        assert.equal(groupDigits(digitsOf(grouped, NUMBER_DIGITS_MAX)), grouped)
      }),
    )
  })
})

describe('digitsOf()', () => {
  test('reads the decimal digits of every script', () => {
    for (const system of Intl.supportedValuesOf('numberingSystem')) {
      const format = new Intl.NumberFormat('en', { numberingSystem: system, useGrouping: false })
      const written = format.format(9_876_543_210)
      if (!/^\p{Nd}{10}$/u.test(written)) continue
      assert.equal(digitsOf(written, 19), '9876543210', system)
    }
  })

  test('reads digits of blocks that adjoin', () => {
    // Eastern Pwo Karen follows Pa'o Karen without a gap.
    assert.equal(digitsOf('\u{116d0}\u{116d9}\u{116da}\u{116e3}', 19), '0909')
  })

  test('returns ASCII digits, at most so many, of any text', () => {
    fc.assert(
      fc.property(anyText, fc.nat(20), (text, most) => {
        assert.match(digitsOf(text, most), new RegExp(`^[0-9]{0,${most}}$`))
      }),
    )
  })
})

test('binOf() and lastFourOf() show ten digits of a short number, twelve of sixteen', () => {
  assert.deepEqual([binOf(VISA), lastFourOf(VISA)], ['42424242', '4242'])
  assert.deepEqual([binOf('378282246310005'), lastFourOf('378282246310005')], ['378282', '0005'])
  assert.equal(binOf('4222222222222'), '422222')
})

test('passesLuhn() agrees with the vault', () => {
  fc.assert(
    fc.property(digits(13, 19), (it) => {
      assert.equal(passesLuhn(it), cardNumberFault(it) === null)
      assert.equal(passesLuhn(withLuhnDigit(it)), true)
    }),
  )
})

function digits(minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...'0123456789'), minLength, maxLength })
}

const anyText = fc.string({
  unit: fc.oneof(fc.constantFrom('0', '٣', '７', '½', '②', ' '), fc.string({ unit: 'binary' })),
})

/** Mostly whole numbers with a correct check digit, in groups of any separators. */
const typedNumber = fc
  .tuple(
    fc.constantFrom('', '4', '4571', '34', '36', '55', '6011', '622126', '65', '67', '9792'),
    digits(0, 18),
    fc.boolean(),
    fc.constantFrom('', ' ', '-', '\u00a0', '.'),
  )
  .map(([first, rest, correct, separator]) => {
    const all = (first + rest).slice(0, 18)
    const number = correct ? withLuhnDigit(all) : all
    return number.replaceAll(/\d{4}/g, (it) => it + separator)
  })
