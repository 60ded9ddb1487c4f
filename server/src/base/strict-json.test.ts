import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { JSON_DEPTH_MAX, JSON_ITEMS_MAX, JSON_PARTS_MAX } from './limits.ts'
import { parseStrictJson } from './strict-json.ts'

/** Integers as doubles with more digits than are always kept are written, without an exponent. */
const LARGE = [
  '1152921504606847000',
  '150000000000000000000',
  '1000000000000000000000',
  '12345000000000000000000',
  '1267650600228229400000000000000',
]

describe('parseStrictJson()', () => {
  test('returns what JSON.parse returns, for every value a double and UTF-8 can hold', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), (value) => {
        const text = JSON.stringify(value)
        assert.deepEqual(parseStrictJson(Buffer.from(text)), JSON.parse(text))
      }),
    )
  })

  test('accepts every number as JSON.stringify writes it, however large', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        for (const it of [value, Math.round(value), 37109960804984730, 1.5e21, BigInt(1e21)]) {
          const text = typeof it === 'bigint' ? String(it) : JSON.stringify(it)
          assert.deepEqual(parseStrictJson(Buffer.from(`[${text}]`)), [JSON.parse(text)])
        }
      }),
    )
  })

  test('never throws anything but body_json_invalid, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        try {
          parseStrictJson(Buffer.from(bytes))
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'body_json_invalid')
        }
      }),
    )
  })

  test('counts levels outside of strings only, whatever is quoted and escaped in them', () => {
    const quoted = fc.array(fc.constantFrom('"', '\\\\', '\n', 'x'.repeat(40), 'é'), {
      maxLength: 12,
    })
    const brackets = '['.repeat(JSON_DEPTH_MAX + 1)
    fc.assert(
      fc.property(quoted, quoted, (before, after) => {
        const it = before.join('') + brackets + after.join('')
        assert.deepEqual(parseStrictJson(Buffer.from(JSON.stringify([it, it]))), [it, it])
        const tooDeep = `[${JSON.stringify(it)},${brackets}`
        assert.throws(
          () => parseStrictJson(Buffer.from(tooDeep)),
          ({ errors }: { errors?: { error: string[] } }) =>
            errors!.error[0]!.includes('nested deeper'),
        )
      }),
    )
  })

  test('says what is wrong and where, and what bytes are that are not text', () => {
    const gzip = Buffer.from([0x1f, 0x8b, 8, 0])
    for (const [bytes, message] of [
      [Buffer.from('{"amount":NaN}'), /NaN .* at character 11\.$/],
      [Buffer.from('hello'), /A word without quotes .* at character 1\.$/],
      [Buffer.from('<xml/>'), /XML/],
      [Buffer.from('\ufeff{}'), /byte order mark/],
      [Buffer.from('/*c*/{}'), /comments/],
      [gzip, /compressed with gzip/],
      [Buffer.from('\ufeff{}', 'utf16le'), /UTF-16/],
    ] as const) {
      assert.throws(
        () => parseStrictJson(bytes),
        ({ errors }: { errors?: { error: string[] } }) => message.test(errors!.error[0]!),
      )
    }
  })

  test('never repeats what was sent', () => {
    const secret = '4242424242424242'
    for (const text of [`{"a":${secret}x}`, `"${secret}`, `${secret}${secret}`, `[${secret}`]) {
      assert.throws(
        () => parseStrictJson(Buffer.from(text)),
        (error: Error & { errors?: unknown }) =>
          !(error.stack + JSON.stringify(error.errors)).includes(secret) &&
          error.cause === undefined,
      )
    }
  })

  const nested = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth))
  const named = (parts: number) => {
    const some = Array.from({ length: parts - 4 }, (_, at) => `"n${at}:":1`)
    return Buffer.from(`[{"${':'.repeat(1000)}":{${some.join(',')}}}]`)
  }
  const listed = (items: number) => Buffer.from(`[[${'null,'.repeat(items - 2)}null]]`)
  for (const [name, bytes] of [
    ['a level over the limit', nested(JSON_DEPTH_MAX + 1)],
    ['a million levels', nested(1_000_000)],
    ['a member over the limit', named(JSON_PARTS_MAX + 1)],
    ['an object over the limit', Buffer.from(`[${'{},'.repeat(JSON_PARTS_MAX - 1)}{}]`)],
    ['an item over the limit', listed(JSON_ITEMS_MAX + 1)],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ['an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['a byte order mark', Buffer.from('\ufeff{}')],
    ['nothing', Buffer.from('')],
    ['an escaped lone surrogate', Buffer.from('"\\ud800"')],
    ['an escaped lone surrogate in a key', Buffer.from('{"\\uDC00":1}')],
    ['surrogates in the wrong order', Buffer.from('"\\udc00\\ud800"')],
    ['a number that is not finite', Buffer.from('[1e400]')],
    ['a long number that is not finite', Buffer.from('9'.repeat(400))],
    ['an integer a double cannot hold', Buffer.from('{"n":10000000000000000999}')],
    ['an integer a double writes with other digits', Buffer.from('[37109960804984728]')],
    ['such an integer of 22 digits', Buffer.from('[1500000000000000000001]')],
    ['the first such integer', Buffer.from('9007199254740993')],
    ['the same with a fraction of zero', Buffer.from('[9007199254740993.0]')],
    ['the same with an exponent', Buffer.from('[9.007199254740993e15]')],
    ['the same with an exponent of one digit', Buffer.from('[900719925474099.3e1]')],
    ['the same with many zeros', Buffer.from(`[9007199254740993.${'0'.repeat(1_000)}]`)],
    ['the same below zero', Buffer.from('{"n":-9007199254740993.00e0}')],
    ['the same with a negative exponent', Buffer.from('[900719925474099300000e-5]')],
    ['an integer of 24 digits with an exponent', Buffer.from('[1.00000000000000000000001e23]')],
    ['a single quote', Buffer.from("{'a':1}")],
    ['NaN', Buffer.from('NaN')],
  ] as const) {
    test(`refuses ${name}`, () => {
      assert.throws(() => parseStrictJson(bytes), { code: 'body_json_invalid' })
    })
  }

  for (const [name, text] of [
    ['the deepest level', nested(JSON_DEPTH_MAX).toString()],
    ['as many members as there may be', named(JSON_PARTS_MAX).toString()],
    ['as many items as there may be', listed(JSON_ITEMS_MAX).toString()],
    ['commas in strings, however many', JSON.stringify([','.repeat(JSON_ITEMS_MAX + 1)])],
    ['whole numbers of many digits that a double is written with', `[${LARGE.join(',')}]`],
    ['brackets in strings, however many', JSON.stringify('[{'.repeat(1000))],
    ['an escaped quote before brackets', `"\\"${'['.repeat(1000)}"`],
    ['an escaped surrogate pair', '"\\ud83d\\ude00"'],
    ['a card number in a string', '{"number":"4242424242424242"}'],
    ['long digits inside a longer string', '"call 4242424242424242424242"'],
    [
      'a large number a double holds exactly',
      '[9007199254740994,1e300,1.5e10,0.1234567890123456789]',
    ],
    [
      'a large number in any notation that a double is written with',
      '[9007199254740994.0,9.007199254740994e15,1e23,1E+23,100000000000000000000000,0e99,1e300]',
    ],
    [
      'a fraction that a double rounds',
      '[9007199254740993.5,12345678901234567890.1,0.30000000000000001]',
    ],
    [
      'zeros, however many, in time',
      `[9007199254740994,1.${'0'.repeat(1_000_000)}1,0.${'0'.repeat(1_000_000)}1]`,
    ],
  ] as const) {
    test(`accepts ${name}`, () => {
      assert.deepEqual(parseStrictJson(Buffer.from(text)), JSON.parse(text))
    })
  }

  test('refuses each whole number that a double is not written with, however many digits it has', () => {
    for (const digits of LARGE) {
      for (const other of [BigInt(digits) + 1n, BigInt(digits) - 1n]) {
        const it = Buffer.from(`{"a":[1.5,${other}]}`)
        assert.throws(() => parseStrictJson(it), { code: 'body_json_invalid' }, String(other))
      }
    }
  })

  test('keeps __proto__ as an ordinary key', () => {
    const value = parseStrictJson(Buffer.from('{"__proto__":{"a":1}}'))
    assert.deepEqual(Object.keys(value as object), ['__proto__'])
    assert.equal(JSON.stringify(value), '{"__proto__":{"a":1}}')
    assert.equal(({} as { a?: number }).a, undefined)
  })
})
