import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { evaluate, parseTemplate } from '../template.ts'

const DASHED = '3622-7206-2716-5567'

test('alias_preserve_format keeps the ends and the layout, and draws the rest', () => {
  const alias = aliasOf(
    '{{ data | alias_preserve_format: 3, 5 }}',
    'ABC12345DEF67890',
    [7, 41, 250],
  )
  assert.match(alias, /^ABC\d{5}[a-z]{3}67890$/)
  assert.match(
    aliasOf('{{ data | alias_preserve_format }}', 'Ab-1 é!', [3]),
    /^[a-z]{2}-\d [a-z]!$/,
  )
})

test('alias_preserve_length keeps the ends and the length, and draws the rest', () => {
  const alias = aliasOf(
    '{{ data | alias_preserve_length: 3, 5 }}',
    'ABC12345DEF67890',
    [7, 41, 250],
  )
  assert.match(alias, /^ABC[a-z0-9]{8}67890$/)
  assert.match(
    aliasOf('{{ data | alias_preserve_length: 0, 4 }}', DASHED, [9]),
    /^[a-z0-9]{15}5567$/,
  )
})

test('alias_card keeps the layout and, when asked, the BIN and the last four', () => {
  assert.match(
    aliasOf("{{ data | alias_card: 'true', 'true' }}", DASHED, [8]),
    /^3622-7206-\d{4}-5567$/,
  )
  assert.match(aliasOf("{{ data | alias_card: 'true' }}", DASHED, [8]), /^3622-7206-\d{4}-\d{4}$/)
  assert.match(aliasOf('{{ data | alias_card }}', '3622 720627 1667', [8]), /^\d{4} \d{6} \d{4}$/)
  assert.match(aliasOf('{{ data | alias_card: true }}', '36227206271667', [8]), /^362272\d{8}$/)
})

test('an alias filter fails when there is nothing to draw', () => {
  const shown = { name: 'FilterError', reason: 'value_shown' }
  for (const [expression, data] of [
    ["{{ data | alias_card: 'true', 'true' }}", '123456789'],
    ["{{ data | alias_card: 'true', 'true' }}", '1234567890'],
    ['{{ data | alias_preserve_format: 3, 5 }}', '12345678'],
    ['{{ data | alias_preserve_format }}', '---'],
    ['{{ data | alias_preserve_length: 9 }}', '12345678'],
    ['{{ data | alias_preserve_length }}', ''],
  ] as const) {
    assert.throws(() => aliasOf(expression, data, [5]), shown, `${expression} of ${data}`)
  }
})

test('an alias is drawn again when it is the secret', () => {
  assert.equal(aliasOf('{{ data | alias_card: false, false }}', '7', [7, 17, 3]), '3')
  // Mapping letters to lower-case ones would reveal `A` as `a` to a reader who knows how aliases are made.
  assert.equal(aliasOf('{{ data | alias_preserve_format }}', 'A', [0, 26, 1]), 'b')
})

test('an alias filter draws every character as often as any other', () => {
  const drawn = new Map<string, number>()
  for (let byte = 0; byte < 256; byte++) {
    // Bytes that would favour the first digits are skipped; the next byte gives the 3.
    const alias = aliasOf('{{ data | alias_card }}', '9', [byte, 3])
    if (byte < 250) drawn.set(alias, (drawn.get(alias) ?? 0) + 1)
    else assert.equal(alias, '3')
  }
  for (const digit of '01245678') assert.equal(drawn.get(digit), 25)
})

test('no alias is the secret, whatever is drawn', () => {
  const filters = ['alias_card: true, true', 'alias_preserve_format: 2, 2', 'alias_preserve_length']
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('1', '2', 'a', 'B', '-'), minLength: 12, maxLength: 19 }),
      fc.constantFrom(...filters),
      fc.array(fc.nat({ max: 255 }), { minLength: 1 }),
      (secret, filter, bytes) => {
        try {
          const alias = aliasOf(`{{ data | ${filter} }}`, secret, bytes)
          assert.notEqual(alias.toLowerCase(), secret.toLowerCase())
          assert.equal(alias.length, secret.length)
        } catch (error) {
          assert.equal((error as Error).name, 'FilterError')
        }
      },
    ),
  )
})

test('parseTemplate() says which templates draw by chance', () => {
  assert.equal(parseTemplate('{{ data | alias_card }}').random, true)
  assert.equal(parseTemplate('a-{{ data | upcase | alias_preserve_length }}').random, true)
  assert.equal(parseTemplate('{{ data | upcase }}').random, false)
  assert.equal(parseTemplate('alias_card').random, false)
})

/** Evaluates over `data` with random bytes that repeat `bytes`, after some that count upwards. */
function aliasOf(expression: string, data: string, bytes: readonly number[]): string {
  let next = 0
  const random = {
    bytes: (length: number) =>
      Uint8Array.from({ length }, () => {
        const round = Math.floor(next / bytes.length)
        return (bytes[next++ % bytes.length]! + (round < 8 ? 0 : round)) % 256
      }),
  }
  return evaluate(parseTemplate(expression), { variables: { data }, random }) as string
}
