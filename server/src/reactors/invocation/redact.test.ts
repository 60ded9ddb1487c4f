import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import type { Json } from '../../base/json.ts'
import { MiB, REDACTION_CHARS_MAX } from '../../base/limits.ts'
import { REDACTED, redactor, WITHHELD } from './redact.ts'

test('redactor() leaves nothing of a secret that tells something, wherever and however often it stands', () => {
  const secret = fc.string({ minLength: 3, maxLength: 40, unit: 'grapheme' })
  const words = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 4 })
  fc.assert(
    fc.property(fc.array(secret, { minLength: 1, maxLength: 4 }), words, (secrets, rest) => {
      const redact = redactor([{ a: secrets }])
      const text = [...secrets, ...rest, ...secrets].join('')
      const shown = redact(text).split(REDACTED)
      for (const it of secrets) {
        assert.ok(!shown.some((part) => part.includes(it)))
        for (let at = 0; at + 8 <= it.length; at++) {
          assert.ok(!shown.some((part) => part.includes(it.slice(at, at + 8))))
        }
      }
    }),
  )
})

test('redactor() leaves what is no secret as it is', () => {
  const nothing: Json[] = ['', 'ab', 12, true, null, {}, [], { name: 1 }]
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.equal(redactor(nothing)(text), text)
    }),
  )
  const redact = redactor(['4242424242424242', 2030, '123'])
  assert.equal(redact('Declined: 4242 of 12/2031, 12-3'), 'Declined: 4242 of 12/2031, 12-3')
})

test('redactor() knows texts, numbers, and both at any depth, in JSON and in URLs', () => {
  const redact = redactor(['a "b"', [{ c: [2030, 'ü/ö'] }]])
  assert.equal(
    redact('<a "b"> <a \\"b\\"> <a \\\\\\"b\\\\\\"> <a%20%22b%22> <2030> <ü/ö> <%C3%BC%2F%C3%B6>'),
    `${`<${REDACTED}> `.repeat(6)}<${REDACTED}>`,
  )
})

test('redactor() shows no text at all where there is too much to look for', () => {
  const most = 'x'.repeat(REDACTION_CHARS_MAX)
  assert.equal(redactor([most])('a'), 'a')
  assert.equal(redactor([most, 'abc'])('a'), WITHHELD)
})

test('redactor() makes no forms of what is too long in any of them', (t) => {
  const quotes = '"'.repeat(2.4 * MiB)
  const escaping = t.mock.method(JSON, 'stringify')
  const encoding = t.mock.method(globalThis, 'encodeURIComponent')
  assert.equal(redactor(['abc', quotes])('a'), WITHHELD)
  for (const { arguments: given } of [...escaping.mock.calls, ...encoding.mock.calls]) {
    assert.ok(String(given[0]).length <= REDACTION_CHARS_MAX)
  }
  assert.ok(escaping.mock.callCount() > 0)
})
