import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { namePattern } from './name-pattern.ts'

describe('namePattern()', () => {
  const cases: [pattern: string, name: string, found: boolean][] = [
    ['pay', 'My Payments', true],
    ['PÄY', 'my päyments', true],
    ['', 'anything', true],
    ['pay', 'ship', false],
    ['pay*', 'payments', true],
    ['pay*', 'my payments', false],
    ['*pay', 'My Pay', true],
    ['p?y', 'PAY', true],
    ['p?y', 'pa', false],
    ['p?y', 'paay', false],
    ['?', '\u{1F511}', true],
    ['*', '', true],
    ['?', '', false],
    ['*a*b*', 'xxaxxbxx', true],
    ['*a*b*', 'xxbxxaxx', false],
    ['a.c*', 'abc', false],
    ['[a]*', 'a', false],
  ]
  for (const [pattern, name, found] of cases) {
    test(`${found ? 'finds' : 'does not find'} ${JSON.stringify(name)} by ${JSON.stringify(pattern)}`, () => {
      assert.equal(namePattern(pattern)(name), found)
    })
  }

  test('means what a regular expression means', () => {
    const pattern = fc.array(fc.constantFrom('a', 'b', '*', '?'), { maxLength: 7 })
    const name = fc.array(fc.constantFrom('a', 'b'), { maxLength: 7 })
    fc.assert(
      fc.property(pattern, name, (wanted, given) => {
        fc.pre(/[*?]/.test(wanted.join('')))
        const expected = new RegExp(
          `^${wanted.join('').replaceAll('*', '.*').replaceAll('?', '.')}$`,
        ).test(given.join(''))
        assert.equal(namePattern(wanted.join(''))(given.join('')), expected)
      }),
      { numRuns: 2_000 },
    )
  })

  test('comes to an end with patterns made to go astray', () => {
    assert.equal(namePattern('*a'.repeat(100) + 'b')('a'.repeat(200)), false)
  })
})
