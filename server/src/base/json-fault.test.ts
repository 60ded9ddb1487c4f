import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { findJsonFault } from './json-fault.ts'

describe('findJsonFault() names what is wrong, and where:', () => {
  const cases: [text: string, message: string][] = [
    ['', 'The body holds nothing but white space.'],
    [' \n', 'The body holds nothing but white space.'],
    [
      '{"amount":NaN}',
      'JSON has neither NaN nor Infinity: write null or a string at character 11.',
    ],
    ['[-Infinity]', 'JSON has neither NaN nor Infinity: write null or a string at character 2.'],
    ['hello', 'A word without quotes is true, false or null, unlike the one at character 1.'],
    ['[True]', 'A word without quotes is true, false or null, unlike the one at character 2.'],
    [
      '{"ip":10.0.0.1}',
      'A number has one point and one exponent at most, unlike the one at character 11.',
    ],
    ['[1e5e5]', 'A number has one point and one exponent at most, unlike the one at character 5.'],
    ['[1 true]', 'A comma or ] is expected at character 4.'],
    ['{"a" true}', 'A colon is expected at character 6.'],
    ['{true:1}', 'A name in double quotes is expected at character 2.'],
    ['["abc"x', 'A comma or ] is expected at character 7.'],
    ['nullx', 'A word without quotes is true, false or null, unlike the one at character 1.'],
    ['<xml/>', 'The body is XML or HTML, not JSON: it begins with < at character 1.'],
    ['\ufeff{}', 'The body begins with a byte order mark: send it without one.'],
    ['/*c*/{}', 'JSON has no comments: remove the one at character 1.'],
    ['{"a":1 // c\n}', 'JSON has no comments: remove the one at character 8.'],
    ["{'a':1}", 'A name in double quotes is expected at character 2.'],
    ['{"a":\'b\'}', 'JSON has double quotes only: replace the quote at character 6.'],
    ['{a:1}', 'A name in double quotes is expected at character 2.'],
    ['{"a":1,}', 'A comma has no member after it before character 8.'],
    ['[1,]', 'A comma has no item after it before character 4.'],
    ['[1 2]', 'A comma or ] is expected at character 4.'],
    ['{"a" 1}', 'A colon is expected at character 6.'],
    ['{"a":1]', 'A comma or } is expected at character 7.'],
    ['{}{}', 'The JSON is complete, but more follows at character 3.'],
    ['[01]', 'A number has a leading zero at character 2.'],
    ['[1.]', 'A number lacks a digit at character 4.'],
    ['[1e+]', 'A number lacks a digit at character 5.'],
    ['[+1]', 'A number begins with a digit or a minus sign, unlike the one at character 2.'],
    ['[.5]', 'A number begins with a digit or a minus sign, unlike the one at character 2.'],
    ['[-]', 'A value is expected at character 2.'],
    [']', 'A value is expected at character 1.'],
    ['{"a":}', 'A value is expected at character 6.'],
    ['{1:2}', 'A name in double quotes is expected at character 2.'],
    ['["a\nb"]', 'A control character must be escaped, as in \\n, at character 4.'],
    ['["\\x"]', 'JSON does not have the escape at character 3.'],
    ['["\\u00g0"]', 'JSON does not have the escape at character 3.'],
    ['["\u{1f600}\u{1f600}" 1]', 'A comma or ] is expected at character 7.'],
    ...[
      '{',
      '{"a',
      '{"a"',
      '{"a":',
      '{"a":1',
      '{"a":1,',
      '[',
      '[1,',
      '"a\\',
      '"\\u00',
      'tru',
      '-',
      '1.',
      '[1e',
    ].map((it): [string, string] => [
      it,
      `The body ends before the JSON does, after character ${it.length}.`,
    ]),
  ]
  for (const [text, message] of cases) {
    test(JSON.stringify(text), () => assert.equal(findJsonFault(text)?.message, message))
  }
})

test('findJsonFault() finds a fault in exactly the texts that are not JSON', () => {
  const part = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '\\',
    '\\u12',
    '0',
    '1',
    '-',
    '.',
    'e',
    '+',
    ' ',
    '\n',
    'true',
    'nul',
    'NaN',
    '/',
    "'",
    '\u{1f600}',
    '\ud800',
    '\u0000',
    '\u00a0',
    '\u2028',
    '\ufeff',
  )
  const mutated = fc.tuple(fc.json(), fc.nat(), fc.nat(3), part).map(([json, at, cut, it]) => {
    const from = at % (json.length + 1)
    return json.slice(0, from) + it + json.slice(from + cut)
  })
  const text = fc.oneof(
    fc.json(),
    fc.array(part, { maxLength: 12 }).map((it) => it.join('')),
    mutated,
  )
  fc.assert(
    fc.property(text, (it) => {
      let parsed = true
      try {
        JSON.parse(it)
      } catch {
        parsed = false
      }
      const fault = findJsonFault(it)
      assert.equal(fault === null, parsed, fault?.message)
      if (fault !== null) assert.ok(fault.at <= it.length)
    }),
    { numRuns: 3_000 },
  )
})

test('findJsonFault() is as fast for text that is nested, or repeats, as for other text', () => {
  for (const it of ['[', '{"a":', '[1,', '"\\', '\\u', '-', 'a', ' ', '\u{1f600}']) {
    assert.notEqual(findJsonFault(it.repeat(1_000_000)), null)
  }
})
