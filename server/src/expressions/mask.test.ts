import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { JSON_DEPTH_MAX, MASK_CHARS_MAX, MASK_NODES_MAX } from '../base/limits.ts'
import { evaluateMask, parseMask } from './mask.ts'

interface MaskVector {
  readonly comment: string
  readonly mask: Json
  readonly data: Json
  readonly onError?: 'throw' | 'close'
  readonly expected?: Json
  readonly error?: string
}

const VECTORS = new URL('../../test/vectors/expressions/masks.json', import.meta.url)

describe('evaluateMask() over the vectors', () => {
  for (const vector of JSON.parse(readFileSync(VECTORS, 'utf8')) as MaskVector[]) {
    const { comment, mask, data, onError = 'throw', expected, error } = vector
    test(comment, () => {
      const evaluated = () => evaluateMask(parseMask(mask), over(data), onError)
      if (error === undefined) assert.deepEqual(evaluated(), expected)
      else assert.throws(evaluated, { name: 'FilterError', reason: error })
    })
  }
})

test('parseMask() names the member whose text is wrong', () => {
  const mask = { cards: [{ number: 'ok' }, { number: '{{ data.number' }] }
  const error = { name: 'ExpressionError', reason: 'expression_unclosed', position: 0 }
  assert.throws(() => parseMask(mask), { ...error, member: 'cards[1].number' })
  assert.throws(() => parseMask('{{ data'), { ...error, member: '' })
})

test('parseMask() refuses a mask nested deeper than JSON may be', () => {
  assert.doesNotThrow(() => parseMask(nested(JSON_DEPTH_MAX)))
  assert.throws(() => parseMask(nested(JSON_DEPTH_MAX + 1)), { reason: 'mask_too_deep' })
})

test('evaluateMask() keeps a member called __proto__ as a member', () => {
  const mask = JSON.parse('{"__proto__": "{{ data }}", "a": 1}') as Json
  const shown = evaluateMask(parseMask(mask), over('x'), 'throw')
  assert.equal(JSON.stringify(shown), '{"__proto__":"x","a":1}')
})

test('a mask of reveal_last shows the last four characters and nothing else', () => {
  const mask = parseMask('{{ data | reveal_last: 4 }}')
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), digits(0, 19)), (secret) => {
      const characters = Array.from(secret)
      const shown = Array.from(evaluateMask(mask, over(secret), 'throw') as string)
      assert.equal(shown.length, characters.length)
      for (const [index, it] of shown.entries()) {
        const last = characters.length > 4 && index >= characters.length - 4
        if (!last) assert.ok(it === 'X' || (it === '-' && characters[index] === '-'))
        else if (shown.join('') !== 'X'.repeat(shown.length)) assert.equal(it, characters[index])
      }
    }),
  )
})

test('a mask never shows all of a value through a filter that masks', () => {
  const filters = ['reveal_last: 4', 'reveal: 2, 2', "card_mask: 'true', 'true'", 'reveal_last: 19']
  for (const filter of filters) {
    const mask = parseMask(`{{ data | ${filter} }}`)
    fc.assert(
      fc.property(fc.oneof(digits(1, 8), digits(1, 19), fc.string({ minLength: 1 })), (secret) => {
        fc.pre(/[^X]/u.test(secret))
        assert.notEqual(evaluateMask(mask, over(secret), 'throw'), secret)
      }),
    )
  }
})

test('evaluateMask() shows nothing of what an expression with text left over is about', () => {
  fc.assert(
    fc.property(
      digits(1, 19),
      fc.constantFrom(',', ', x', ' x', "'x'", ', reveal_last: 4'),
      (it, rest) => {
        const mask = parseMask({ number: `{{ data.number${rest} }}` })
        const expected = { number: 'X'.repeat(it.length) }
        assert.deepEqual(evaluateMask(mask, over({ number: it }), 'throw'), expected)
      },
    ),
  )
})

test('evaluateMask() hides a leaf whose filter fails when it closes, and keeps the others', () => {
  const mask = parseMask({
    a: '{{ data.a | to_number }}',
    b: '{{ data.b }}',
    c: 'n. {{ data.a | plus: 1 }}',
  })
  assert.deepEqual(evaluateMask(mask, over({ a: 'one', b: 2 }), 'close'), {
    a: 'XXX',
    b: 2,
    c: 'n. XXX',
  })
  assert.throws(() => evaluateMask(mask, over({ a: 'one', b: 2 }), 'throw'), {
    name: 'FilterError',
  })
})

test('evaluateMask() does not let a mask repeat the data without end', () => {
  const data = 'x'.repeat(1_000_000)
  const mask = parseMask(Array.from({ length: MASK_NODES_MAX }, () => '{{ data }}'))
  assert.throws(() => evaluateMask(mask, over(data), 'throw'), { reason: 'work_too_large' })
  const shown = JSON.stringify(evaluateMask(mask, over(data), 'close'))
  assert.ok(shown.length < 20_000_000)
})

test('parseMask() refuses a mask of more members than every reader should pay for', () => {
  const most: Json = { inside: Array.from({ length: MASK_NODES_MAX - 1 }, () => 'x') }
  assert.deepEqual(evaluateMask(parseMask(most), over('data'), 'throw'), most)
  assert.throws(() => parseMask({ ...most, more: 1 }), { reason: 'mask_too_large' })
})

test('parseMask() refuses more names and texts than every reader should have to parse', () => {
  const most = ['x'.repeat(MASK_CHARS_MAX - 3), { abc: 1 }]
  assert.deepEqual(evaluateMask(parseMask(most), over('data'), 'throw'), most)
  assert.throws(() => parseMask(['x', ...most]), { reason: 'mask_too_large' })
  assert.throws(() => parseMask({ ['n'.repeat(MASK_CHARS_MAX)]: 'x' }), {
    reason: 'mask_too_large',
  })
})

describe('a mask that closes does nothing once all work is done', () => {
  const members = Object.fromEntries(Array.from({ length: 150_000 }, (_, at) => [`k${at}`, at]))
  for (const expression of ['{{ data }}', '{{ data | size }}', '{{ data | to_number }}']) {
    test(`${expression}: members are listed a few times, however often they are asked for`, () => {
      let lists = 0
      const data = new Proxy<JsonObject>(members, {
        ownKeys: (it) => {
          lists++
          return Reflect.ownKeys(it)
        },
      })
      const mask = parseMask(Array<string>(20).fill(expression))
      const shown = evaluateMask(mask, over(data), 'close') as Json[]
      assert.equal(shown.at(-1), null)
      assert.ok(lists < 4, `${lists} times`)
    })
  }
})

function over(data: Json) {
  return { variables: { data }, random: { bytes: (length: number) => new Uint8Array(length) } }
}

function nested(levels: number): Json {
  let mask: Json = 'x'
  for (let level = 0; level < levels; level++) mask = [mask]
  return mask
}

/** Texts of digits, with a length between the two. */
function digits(minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.nat({ max: 9 }).map(String), minLength, maxLength })
}
