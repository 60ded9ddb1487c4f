import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../server/test/kit/fast-check.ts'
import { BRAND_DIGITS, brandOf, BRANDS, brandsOf, type BrandName } from './brands.ts'

describe('brandsOf()', () => {
  for (const [digits, brands] of [
    ['', []],
    ['5', []],
    ['3', []],
    ['4', ['visa']],
    ['34', ['american-express']],
    ['36', ['diners-club']],
    ['3095', ['diners-club']],
    ['51', ['mastercard']],
    ['55', ['mastercard']],
    ['56', []],
    ['2220', []],
    ['2221', ['mastercard']],
    ['2720', ['mastercard']],
    ['2721', []],
    ['2204', ['mir']],
    ['2205', []],
    ['6011', ['discover']],
    ['3527', []],
    ['3528', ['jcb']],
    ['3589', ['jcb']],
    ['62', ['unionpay']],
    ['8171', ['unionpay']],
    ['8172', ['rupay']],
    ['67', ['maestro']],
    ['5018', ['maestro']],
    ['5019', ['dankort']],
    ['9792', ['troy']],
    ['606282', ['hipercard']],
    ['506099', ['verve']],
  ] as const) {
    test(`${digits || 'nothing'} is ${brands.join(', ') || 'open'}`, () => {
      assert.deepEqual(brandsOf(digits), brands)
    })
  }

  test('the longer range wins: Elo and UnionPay within those of others', () => {
    assert.deepEqual(brandsOf('40117'), ['visa'])
    assert.deepEqual(brandsOf('401178'), ['elo'])
    assert.deepEqual(brandsOf('65003'), ['discover'])
    assert.deepEqual(brandsOf('650031'), ['elo'])
    assert.deepEqual(brandsOf('62778'), ['unionpay'])
    assert.deepEqual(brandsOf('627780'), ['elo'])
  })

  test('co-branded cards carry two, the international one first', () => {
    assert.deepEqual(brandsOf('457'), ['visa'])
    assert.deepEqual(brandsOf('4571'), ['visa', 'dankort'])
    assert.deepEqual(brandsOf('3530'), ['jcb', 'rupay'])
    assert.deepEqual(brandsOf('3569'), ['jcb', 'rupay'])
    assert.deepEqual(brandsOf('622125'), ['unionpay'])
    assert.deepEqual(brandsOf('622126'), ['unionpay', 'discover'])
    assert.deepEqual(brandsOf('622925'), ['unionpay', 'discover'])
    assert.deepEqual(brandsOf('650082'), ['discover', 'troy'])
  })

  test('digits after the first ones change nothing', () => {
    fc.assert(
      fc.property(digitsOf(BRAND_DIGITS, BRAND_DIGITS), digitsOf(0, 13), (first, rest) => {
        assert.deepEqual(brandsOf(first + rest), brandsOf(first))
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the table', () => {
  for (const name of BRANDS) {
    const { ranges, lengths } = brandOf(name)

    test(`${name}: each range is ascending and of one length`, () => {
      for (const range of ranges) {
        const [first = '', last = first] = range.split('-')
        assert.match(range, /^\d+(-\d+)?$/)
        assert.equal(first.length, last.length, range)
        assert.ok(range === first || first < last, range)
        assert.ok(first.length <= BRAND_DIGITS, range)
      }
    })

    test(`${name}: its own ranges lead to it, unless another has a narrower one within`, () => {
      for (const range of ranges) {
        const [first = '', last = first] = range.split('-')
        assert.ok(brandsOf(first).includes(name) || brandsOf(last).includes(name), range)
      }
    })

    test(`${name}: the vault stores its lengths, and they ascend`, () => {
      assert.ok(lengths.every((it) => it >= 13 && it <= 19))
      assert.deepEqual(
        lengths,
        lengths.toSorted((a, b) => a - b),
      )
    })
  }

  test('the brands of a co-branded card have security codes of one length', () => {
    for (const digits of ['4571', '3530', '3569', '622126', '650052']) {
      const lengths = brandsOf(digits).map((it) => brandOf(it).codeLength)
      assert.equal(lengths.length, 2, digits)
      assert.equal(new Set(lengths).size, 1, digits)
    }
  })

  test('no two brands have the same range', () => {
    const seen = new Map<string, BrandName>()
    for (const name of BRANDS) {
      for (const range of brandOf(name).ranges) {
        assert.equal(seen.get(range), undefined, `${range} of ${name}`)
        seen.set(range, name)
      }
    }
  })
})

function digitsOf(minLength: number, maxLength: number): fc.Arbitrary<string> {
  const digit = fc.constantFrom(...'0123456789')
  return fc.string({ unit: digit, minLength, maxLength })
}
