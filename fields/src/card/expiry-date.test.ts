import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../server/test/kit/fast-check.ts'
import { formatExpiry, readExpiry } from './expiry-date.ts'

const TODAY = new Date(2026, 10, 30, 23, 59, 59)

describe('readExpiry()', () => {
  for (const [text, month, year] of [
    ['12/30', 12, 2030],
    ['12 / 30', 12, 2030],
    ['1/30', 1, 2030],
    ['01/2030', 1, 2030],
    ['2030-12', 12, 2030],
    ['2030-1', 1, 2030],
    ['2030-12-31', 12, 2030],
    ['203012', 12, 2030],
    ['12-30', 12, 2030],
    ['12.30', 12, 2030],
    ['12 30', 12, 2030],
    ['12\u00a0/\u00a030', 12, 2030],
    ['1230', 12, 2030],
    ['122030', 12, 2030],
    ['530', 5, 2030],
    ['130', 1, 2030],
    ['1330', null, null],
    ['٠١/٣٠', 1, 2030],
    ['１２／３０', 12, 2030],
    ['\u202a12/30\u202c', 12, 2030],
    ['1\u200f2/30', 12, 2030],
    ['Exp. 1/30', 1, 2030],
    ['12/30 123', 12, 2030],
    ['11/26', 11, 2026],
    ['11/56', 11, 2056],
  ] as const) {
    test(`reads ${text}`, () => {
      const { month: readMonth, year: readYear } = readExpiry(text, TODAY)
      assert.deepEqual([readMonth, readYear], [month, year])
    })
  }

  for (const [text, error] of [
    ['', 'missing'],
    [' / ', 'missing'],
    ['1', 'incomplete'],
    ['12', 'incomplete'],
    ['12 / ', 'incomplete'],
    ['12 / 3', 'incomplete'],
    ['12 / 203', 'incomplete'],
    ['0', 'incomplete'],
    ['00', 'invalid'],
    ['0/30', 'invalid'],
    ['00 / 30', 'invalid'],
    ['13 / 30', 'invalid'],
    ['13/2030', 'invalid'],
    // A month that was corrected in the middle: not November.
    ['112 / 30', 'invalid'],
    ['012/30', 'invalid'],
    ['1212/12', 'invalid'],
    ['2030/2030', 'invalid'],
    ['2030-13', 'invalid'],
    // Dates with a day: not December 2031.
    ['12/31/2030', 'invalid'],
    ['1/2/2030', 'invalid'],
    ['12/0030', 'invalid'],
    ['12/1999', 'invalid'],
    ['12/57', 'invalid'],
    ['12/2057', 'invalid'],
    ['10/26', 'past'],
    ['10/2026', 'past'],
    ['12/25', 'past'],
    ['11/26', null],
    ['12/26', null],
  ] as const) {
    test(`says ${error ?? 'nothing'} of ${text || 'an empty field'}`, () => {
      const state = readExpiry(text, TODAY)
      assert.equal(state.error, error)
      assert.equal(state.complete, error === null)
    })
  }

  test('is complete only with a month and a year that the vault takes', () => {
    fc.assert(
      fc.property(typed, (text) => {
        const { month, year, complete } = readExpiry(text, TODAY)
        if (!complete) return
        assert.ok(month !== null && month >= 1 && month <= 12)
        assert.ok(year !== null && year >= 2026 && year <= 2056)
      }),
    )
  })
})

describe('formatExpiry()', () => {
  for (const [text, formatted] of [
    ['', ''],
    ['/', ''],
    ['0', '0'],
    ['1', '1'],
    ['5', '05 / '],
    ['1/', '01 / '],
    ['1 ', '1'],
    ['12', '12 / '],
    ['13', '01 / 3'],
    ['05', '05 / '],
    ['12 / 3', '12 / 3'],
    ['123', '12 / 3'],
    ['1230', '12 / 30'],
    ['12 / 2030', '12 / 2030'],
    ['12 / 20301', '12 / 2030'],
    ['122030', '12 / 2030'],
    ['2030-12', '12 / 2030'],
    ['2030-1', '01 / 2030'],
    ['1/30', '01 / 30'],
    ['01/2030', '01 / 2030'],
    ['٠١/٣٠', '01 / 30'],
    ['1\u200f', '1'],
    ['112/30', '112 / 30'],
    ['12/31/2030', '1231 / 2030'],
    ['2030/203012/2030', '20302030 / 2030'],
  ] as const) {
    test(`shows ${text || 'nothing'} as ${formatted || 'nothing'}`, () => {
      assert.equal(formatExpiry(text, false), formatted)
    })
  }

  test('lets everything be deleted from the end', () => {
    let shown = '05 / 30'
    const steps = [shown]
    while (shown !== '' && steps.length < 20) {
      shown = formatExpiry(shown.slice(0, -1), true)
      steps.push(shown)
    }
    assert.deepEqual(steps, ['05 / 30', '05 / 3', '05', '0', ''])
  })

  test('goes on after the separator was deleted', () => {
    assert.equal(formatExpiry('12 /', true), '12')
    assert.equal(formatExpiry('123', false), '12 / 3')
  })

  test('types every month and year, digit by digit', () => {
    for (let month = 1; month <= 12; month++) {
      for (const year of ['30', '2030']) {
        let shown = ''
        for (const key of String(month).padStart(2, '0') + year) {
          shown = formatExpiry(shown + key, false)
        }
        assert.equal(shown, `${String(month).padStart(2, '0')} / ${year}`)
      }
    }
  })

  test('is idempotent', () => {
    fc.assert(
      fc.property(typed, fc.boolean(), (text, deleting) => {
        const formatted = formatExpiry(text, deleting)
        assert.equal(formatExpiry(formatted, deleting), formatted)
      }),
      { numRuns: 1000 },
    )
  })

  test('never changes what is read', () => {
    fc.assert(
      fc.property(typed, fc.boolean(), (text, deleting) => {
        const before = readExpiry(text, TODAY)
        const after = readExpiry(formatExpiry(text, deleting), TODAY)
        // A separator ends a month: 0 is no month, but was not finished before.
        if (before.error === 'incomplete') assert.equal(after.complete, false)
        else assert.deepEqual(after, before)
      }),
      { numRuns: 1000 },
    )
  })
})

/** Digits and separators in any order. */
const typed = fc.string({
  unit: fc.constantFrom(...'01235', '2030', '12', '/', ' / ', '-', ' ', '٣'),
  maxLength: 6,
})
