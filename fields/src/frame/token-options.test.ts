import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json } from '../../../server/src/base/json.ts'
import type { Scope } from '../../../server/src/expressions/evaluation-run.ts'
import { evaluateMask, parseMask } from '../../../server/src/expressions/mask.ts'
import * as fc from '../../../server/test/kit/fast-check.ts'
import type { TokenOptions } from '../protocol/messages.ts'
import { checkTokenOptions, withBrand } from './token-options.ts'

const PLAIN_MASKS = [
  '{{ data.number | last4 }}',
  '{{ data.number | reveal_last: 4 }}',
  '{{data.number|reveal_last:0}}',
  '{{ data.number | reveal: 6 }}',
  '{{ data.number | reveal: 6, 4 }}',
  '{{ data.number | reveal: 0 , 0 }}',
  '{{ data.expiration_month }}',
  '{{ data.expiration_year }}',
  'a card',
  '',
  '}} {',
]

describe('checkTokenOptions()', () => {
  test('passes the members that a page may set', () => {
    const options = {
      metadata: { order: '4711', note: 'a { b } } c' },
      containers: ['/pci/high/'],
      mask: { number: '{{ data.number | reveal: 6, 4 }}', shop: ['x', 1, true, null] },
      expires_at: '2030-01-01T00:00:00Z',
      deduplicate_token: true,
    }
    assert.deepEqual(checkTokenOptions(options), { options })
    assert.deepEqual(checkTokenOptions({}), { options: {} })
    assert.deepEqual(checkTokenOptions({ mask: null }), { options: { mask: null } })
  })

  for (const mask of PLAIN_MASKS) {
    test(`passes the mask ${mask || 'of no characters'}`, () => {
      assert.deepEqual(checkTokenOptions({ mask }), { options: { mask } })
      parseMask(mask)
    })
  }

  for (const mask of [
    '{{ data }}',
    '{{ data.number }}',
    '{{ data.cvc }}',
    '{{ data.number | reveal_last: 5 }}',
    '{{ data.number | reveal_last: 16 }}',
    '{{ data.number | reveal_last: 44 }}',
    '{{ data.number | reveal_last: 4, "X" }}',
    '{{ data.number | reveal: 7 }}',
    '{{ data.number | reveal: 60 }}',
    '{{ data.number | reveal: 6, 5 }}',
    '{{ data.number | reveal: 6, 16 }}',
    '{{ data.number | reveal: 6, 4, "X", "0123456789" }}',
    '{{ data.number | reveal: 0, 0, "X", "0123456789" }}',
    '{{ data.number | card_mask: true, true }}',
    '{{ data.number | card_bin }}',
    '{{ data.number | slice: 6, 6 }}',
    '{{ data.number | last4 | append: data.number }}',
    '{{ data.number | reveal_last: 4 | append: data.cvc }}',
    '{{ data.number | prepend: data.number | last4 }}',
    '{{ data["number"] | reveal_last: 4 }}',
    '{{ data | json: "$.number" }}',
    '{{ data.number, reveal_last: 4 }}',
    '{{- data.number | reveal_last: 4 -}}',
    // Several expressions, and braces in braces.
    '{{ data.number | reveal_last: 4 }}{{ data.number }}',
    '{{ data.number }}{{ data.number | reveal_last: 4 }}',
    '{{ data.number | reveal_last: 4 }} {{ data.number | last4 }}',
    '{{ data.expiration_month }}/{{ data.expiration_year }}',
    '{{{ data.number | reveal_last: 4 }}}',
    '{{ {{ data.number | reveal_last: 4 }} }}',
    '{{ data.number {{ data.number | reveal_last: 4 }}',
    'x{{ data.number | reveal_last: 4 }}',
    '{{ data.number | reveal_last: 4 }}x',
    // White space.
    '\n{{ data.number | reveal_last: 4 }}',
    '{{ data.number | reveal_last: 4 }}\n',
    '{{ data.number | reveal_last: 4 }}\n{{ data.number }}',
    '{{\u00a0data.number | reveal_last: 4 }}',
    '{{ data.number\n| reveal_last: 4 }}',
    '{{ data.number | reveal_last:\ufeff4 }}',
    // Tags, comments and braces alone.
    '{% raw %}{{ data.number }}{% endraw %}',
    '{% assign x = data.number %}',
    '{{ data.number %}',
    '{{',
    '{{}}',
    '{{ data.number | reveal_last: ４ }}',
    '{{ data.number | reveal_last: 4e1 }}',
    '{{ data.number | reveal_last: 4.9 }}',
    '{{ DATA.number | reveal_last: 4 }}',
  ]) {
    test(`refuses the mask ${JSON.stringify(mask)}, however deep it lies`, () => {
      for (const value of [
        mask,
        [mask],
        { number: mask },
        { a: [{ b: [[mask]] }] },
        ['ok', PLAIN_MASKS[0], mask],
        { [mask]: 'x' },
        { a: { [mask]: {} } },
      ]) {
        assert.ok('errors' in checkTokenOptions({ mask: value }))
      }
    })
  }

  test('refuses an expression that only shows when it becomes JSON', () => {
    const text = '{{ data.number }}'
    for (const mask of [
      new String(text),
      [new String(text)],
      { number: Object(text) as unknown },
      { toJSON: () => text },
      Object.assign(new Date(0), { toJSON: () => text }),
    ]) {
      assert.deepEqual(Object.keys(errorsOf({ mask })), ['mask'])
      assert.deepEqual(Object.keys(errorsOf({ metadata: { note: mask } })), ['metadata'])
    }
    // What a message carries is a clone, in which the text is still an object.
    assert.ok('errors' in checkTokenOptions(structuredClone({ mask: new String(text) })))
  })

  test('returns what it checked, whatever the object answers next', () => {
    let reads = 0
    const options = {
      get mask() {
        return reads++ === 0 ? 'harmless' : '{{ data.number }}'
      },
    }
    assert.deepEqual(checkTokenOptions(options), { options: { mask: 'harmless' } })
  })

  test('refuses expressions in every other member', () => {
    for (const text of ['{{ data.number }}', '{{ data.number | last4 }}', '{% x %}', 'a {{']) {
      for (const options of [
        { metadata: { note: text } },
        { metadata: { [text]: 'x' } },
        { containers: [text] },
        { expires_at: text },
        { deduplicate_token: text },
      ]) {
        assert.deepEqual(Object.keys(errorsOf(options)), Object.keys(options))
      }
    }
  })

  test('refuses every other member', () => {
    for (const name of [
      'data',
      'type',
      'id',
      'search_indexes',
      'fingerprint_expression',
      'privacy',
      '_debug',
      'encrypted',
      'constructor',
    ]) {
      assert.deepEqual(Object.keys(errorsOf({ [name]: 'x' })), [name])
    }
    const options: unknown = JSON.parse('{"__proto__":{"mask":"{{ data.number }}"}}')
    assert.ok('errors' in checkTokenOptions(options))
  })

  test('refuses what is no object, or what JSON cannot hold', () => {
    const cyclic: Record<string, unknown> = {}
    cyclic['mask'] = cyclic
    let deep: unknown = 'x'
    for (let depth = 0; depth < 50_000; depth++) deep = [deep]
    for (const options of [null, undefined, 'x', 1, [], cyclic, { mask: 1n }, { mask: deep }]) {
      assert.deepEqual(Object.keys(errorsOf(options)), ['options'])
    }
  })

  test('passes no mask in which the vault shows more than six first and four last digits', () => {
    // What a page may not see is in Cyrillic letters here, which no mask of the test has.
    const data = {
      number: 'ABCDEFабвгджMNOP',
      cvc: 'ийк',
      expiration_month: 12,
      expiration_year: 2030,
      name: 'лмно',
    }
    let passed = 0
    fc.assert(
      fc.property(hostileMask, (mask) => {
        const checked = checkTokenOptions({ mask })
        if ('errors' in checked) return
        passed++
        const parsed = parseMask(checked.options.mask as Json)
        const shown = JSON.stringify(evaluateMask(parsed, over(data), 'close'))
        assert.doesNotMatch(shown, /\p{Script=Cyrillic}/u)
      }),
      { numRuns: 3000 },
    )
    assert.ok(passed > 100, `only ${passed} masks passed`)
  })
})

describe('withBrand()', () => {
  test('adds the brand to the metadata, and changes nothing else', () => {
    assert.deepEqual(withBrand({}, 'dankort'), { metadata: { brand: 'dankort' } })
    const options = { metadata: { order: '4711' }, mask: null }
    assert.deepEqual(withBrand(options, 'dankort'), {
      metadata: { order: '4711', brand: 'dankort' },
      mask: null,
    })
    assert.deepEqual(options.metadata, { order: '4711' })
  })

  test('changes nothing without a choice', () => {
    const options = { metadata: { order: '4711' } }
    assert.equal(withBrand(options, null), options)
  })

  test('leaves a brand that the page has set, and metadata that is no object', () => {
    for (const metadata of [{ brand: 'x' }, { brand: '' }, null, 'x', ['x']]) {
      const options = { metadata } as TokenOptions
      assert.equal(withBrand(options, 'dankort'), options)
    }
  })
})

function over(data: Json): Scope {
  return { variables: { data }, random: { bytes: (length) => new Uint8Array(length) } }
}

function errorsOf(options: unknown): Readonly<Record<string, readonly string[]>> {
  const checked = checkTokenOptions(options)
  return 'errors' in checked ? checked.errors : {}
}

/** Masks of pieces of expressions, in objects, arrays and boxed texts. */
const hostileMask: fc.Arbitrary<unknown> = fc.oneof(
  pieces(),
  fc.array(pieces(), { maxLength: 4 }),
  fc.dictionary(pieces(), pieces(), { maxKeys: 3 }),
  pieces().map((it) => ({ a: [new String(it)] })),
)

function pieces(): fc.Arbitrary<string> {
  const whole = fc.constantFrom(...PLAIN_MASKS)
  const piece = fc.constantFrom(
    '{{',
    '}}',
    '{%',
    '%}',
    '-',
    ' ',
    '\n',
    'data',
    'data.number',
    'data.cvc',
    ' | ',
    'last4',
    'reveal_last: ',
    'reveal: ',
    '6',
    '4',
    ', ',
    "'X'",
  )
  const expression = fc
    .tuple(fc.constantFrom('reveal', 'reveal_last'), fc.nat(20), fc.option(fc.nat(20)))
    .map(([filter, first, last]) => {
      const rest = last === null ? '' : `, ${last}`
      return `{{ data.number | ${filter}: ${first}${rest} }}`
    })
  const mixed = fc
    .array(fc.oneof(whole, piece, expression), { maxLength: 8 })
    .map((it) => it.join(''))
  return fc.oneof(whole, expression, mixed)
}
