import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { redactor } from './redact.ts'

test('redactor() takes out strings and numbers, however deep, the longer first', () => {
  const redact = redactor([
    '{"card":{"number":"4242424242424242","start":"4242"}}',
    '{"pin":12345}',
  ])
  assert.equal(redact('4242424242424242 or 4242, 12345'), '[redacted] or [redacted], [redacted]')
})

test('redactor() leaves what is too short to be a secret', () => {
  assert.equal(redactor(['["a", 12]'])('a 12'), 'a 12')
})

test('redactor() leaves nothing of a line when there is too much to look for', () => {
  const many = Array.from({ length: 10_001 }, (_, it) => 1000 + it)
  assert.equal(redactor([JSON.stringify(many)])('anything'), '[redacted]')
  assert.equal(redactor([JSON.stringify(many.slice(1))])('anything'), 'anything')
})

test('redactor() leaves nothing of what is said after it has looked often enough', () => {
  const few = redactor(['["4242", "4343"]'])
  const many = redactor([JSON.stringify(Array.from({ length: 10_000 }, (_, it) => 1000 + it))])
  const said = (redact: (line: string) => string): number => {
    let lines = 0
    while (lines < 30_000 && redact('a') === 'a') lines++
    return lines
  }
  assert.deepEqual([said(few), said(many)], [30_000, 98])
})

test('redactor() leaves no value of three characters or more in any line', () => {
  const value = fc.string({ minLength: 3, unit: fc.constantFrom('1', '2', '3') })
  fc.assert(
    fc.property(fc.array(value, { minLength: 1 }), fc.string(), (values, text) => {
      const line = redactor([JSON.stringify(values)])(`${text}${values.join(' ')}`)
      assert.ok(values.every((it) => !line.includes(it)))
    }),
  )
})
