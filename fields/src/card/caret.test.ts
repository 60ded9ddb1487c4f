import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../server/test/kit/fast-check.ts'
import { caretAfter } from './caret.ts'
import { digitsOf, groupDigits, NUMBER_DIGITS_MAX } from './card-number.ts'

describe('caretAfter()', () => {
  test('stays behind a digit that was typed in the middle', () => {
    assert.equal(typed('4242 9|4242'), '4242 9|424 2')
    assert.equal(typed('42429| 4242'), '4242 9|424 2')
    assert.equal(typed('9|4242'), '9|424 2')
  })

  test('stays at the end', () => {
    assert.equal(typed('42424|'), '4242 4|')
    assert.equal(typed('4242 4242 4242 4242|'), '4242 4242 4242 4242|')
  })

  test('stays at the start', () => {
    assert.equal(typed('|24242'), '|2424 2')
  })

  test('moves before a separator that backspace deletes, so that the next one deletes a digit', () => {
    assert.equal(typed('4242|4242'), '4242| 4242')
  })

  test('moves after a separator that Delete deletes, so that the next one deletes a digit', () => {
    assert.equal(typed('4242|4242', true), '4242 |4242')
  })

  test('keeps the digits before the caret', () => {
    fc.assert(
      fc.property(text, fc.nat(25), fc.boolean(), (value, position, forward) => {
        const caret = Math.min(position, value.length)
        const formatted = groupDigits(digitsOf(value, NUMBER_DIGITS_MAX))
        const at = caretAfter(value, caret, formatted, forward)
        const before = digitsOf(value.slice(0, caret), NUMBER_DIGITS_MAX)
        assert.equal(formatted.slice(0, at).replaceAll(' ', ''), before)
      }),
    )
  })
})

/** Groups a number as typed, with the caret as a bar. */
function typed(text: string, deletingForward = false): string {
  const caret = text.indexOf('|')
  const value = text.replace('|', '')
  const formatted = groupDigits(digitsOf(value, NUMBER_DIGITS_MAX))
  const at = caretAfter(value, caret, formatted, deletingForward)
  return `${formatted.slice(0, at)}|${formatted.slice(at)}`
}

const text = fc.string({ unit: fc.constantFrom(...'0123456789 -'), maxLength: 19 })
