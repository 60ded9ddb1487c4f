import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { stepsOf, visitStrings } from './json-strings.ts'

function isJson(text: string, several = false): boolean {
  return visitStrings(Buffer.from(text), several, () => {})
}

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('visitStrings() takes for JSON what JSON.parse() does', () => {
  test('when a good text is changed in one place, or in none', () => {
    const good = fc.jsonValue({ depthSize: 'medium' }).map((it) => JSON.stringify(it, null, 1))
    const sign = fc.constantFrom(
      '',
      ...'{}[]",:\\-+.0123456789eEtrufalsn /u\n\t\0\u00a0é'.split(''),
    )
    const change = fc.tuple(fc.nat(), fc.nat(2), sign)
    fc.assert(
      fc.property(good, change, (text, [where, removed, added]) => {
        const at = where % (text.length + 1)
        const changed = text.slice(0, at) + added + text.slice(at + removed)
        assert.equal(isJson(text), true)
        assert.equal(isJson(changed), parses(changed), JSON.stringify(changed))
      }),
      { numRuns: 5_000 },
    )
  })

  test('when signs of JSON follow each other in any order', () => {
    const signs = '{ } [ ] , : "a" "" 1 -0 1.5e+3 01 . - true nul null "\\ud800" "\\x" "\\u00g0" \\'
    const text = fc.array(fc.constantFrom(...signs.split(' ')), { maxLength: 7 })
    fc.assert(
      fc.property(text, (it) => {
        assert.equal(isJson(it.join('')), parses(it.join('')), it.join(''))
        assert.equal(isJson(it.join(' ')), parses(it.join(' ')), it.join(' '))
      }),
      { numRuns: 20_000 },
    )
  })

  test('for every byte where a value, a name or an escape is expected', () => {
    for (let code = 0; code < 0x80; code++) {
      const sign = String.fromCharCode(code)
      for (const text of [
        sign,
        `[1${sign}2]`,
        `{${sign}:1}`,
        `"\\${sign}"`,
        `"${sign}"`,
        `1${sign}`,
      ]) {
        assert.equal(isJson(text), parses(text), JSON.stringify(text))
      }
    }
  })
})

test('visitStrings() shows strings that are values, each with its way', () => {
  const text = '{"a":["x",1,{"b\\n":"y"}], "c" : "z\\"", "d":{}, "e":[[],["w"]]}'
  const bytes = Buffer.from(text)
  const seen: unknown[] = []
  const valid = visitStrings(bytes, false, (from, to, trail) => {
    seen.push([text.slice(from, to), [...stepsOf(bytes, trail())]])
  })
  assert.ok(valid)
  assert.deepEqual(seen, [
    ['"x"', ['a', 0]],
    ['"y"', ['a', 2, 'b\n']],
    ['"z\\""', ['c']],
    ['"w"', ['e', 1, 0]],
  ])
})

test('stepsOf() reads no name before it is asked for it', () => {
  const bytes = Buffer.from('{"a":{"b":1}}')
  const steps = stepsOf(bytes, [1, ~7, 6])
  assert.equal(steps.next().value, 'a')
  bytes.write('c', 7)
  assert.deepEqual([...steps], [7, 'c'])
})

test('visitStrings() takes one value after the other only when several may come', () => {
  for (const text of ['1\n2', '{}{}', '"a" ["b"]\n']) {
    assert.deepEqual([isJson(text), isJson(text, true)], [false, true], text)
  }
  for (const text of ['1,2', '1]', '', '  \n']) assert.equal(isJson(text, true), false, text)
})

test('visitStrings() passes over a byte order mark, at the start and nowhere else', () => {
  assert.ok(isJson('\ufeff[]'))
  assert.ok(!isJson('[]\ufeff'))
  assert.ok(!isJson('\ufeff\ufeff[]'))
})
