/** Compares the standard filters with liquidjs, where both support the same. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { inUtc } from '../../../test/kit/in-utc.ts'
import { Liquid } from 'liquidjs'
import type { Json, JsonObject } from '../../base/json.ts'
import { evaluate, parseTemplate } from '../template.ts'

const liquid = new Liquid({ ownPropertyOnly: true, preserveTimezones: true, timezoneOffset: 0 })

/** Letters of several scripts, signs and white space, of one code unit each: liquidjs cuts between units. */
const text = fc.string({
  unit: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('a', 'b', 'A', 'ä', 'ß', 'Ω', '字', '1', '-', ',') },
    fc.constantFrom(' ', '\n', '\r\n', '<', '>', '&', '"', '+', '%', '|', '{{', '}}', '$&', '$1'),
  ),
  maxLength: 30,
})
// A double quote becomes &quot; here, as in Liquid's first implementation; liquidjs writes its number.
const unquoted = text.map((it) => it.replaceAll('"', "'"))
const some = text.filter((it) => it !== '')
const separator = some.filter((it) => it !== ' ')
const trimmed = fc
  .array(fc.string({ unit: fc.constantFrom('a', 'ä', '-'), minLength: 1 }), { minLength: 1 })
  .map((words) => words.join(' '))
const whole = fc.integer({ min: -1000, max: 1000 })
const decimal = fc.integer({ min: -100_000, max: 100_000 }).map((it) => it / 100)
const number = fc.oneof(whole, decimal)
const divisor = whole.filter((it) => it !== 0)
const count = fc.nat({ max: 40 })
const numbers = fc.array(whole)
const words = fc.array(fc.constantFrom('a', 'b', 'ab', 'z', 'ä'))
const scalars = fc.array(fc.oneof(whole, fc.constantFrom('a', 'b', ''), fc.boolean()))
const records = fc.array(fc.record({ name: fc.constantFrom('a', 'b', 'c'), size: whole }))
const plain = fc.string({ unit: fc.constantFrom('a', 'ä', '字', ' ', '&', '+', '%', '/', '\n') })

const moment = fc
  .tuple(
    fc.date({ min: new Date('1000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
    fc.constantFrom('Z', '+00:00', '+02:00', '-0330', '+14:00'),
  )
  .map(([date, zone]) => date.toISOString().replace('Z', zone))
// Directives that both support.
const format = fc
  .array(
    fc.tuple(
      fc.constantFrom('', '', '-', '_', '0', '^', '#'),
      fc.constantFrom(...'YCymBbdejAauwUWHkIlMSLpPsz%'),
      fc.constantFrom('', ' ', '/', 'T', ': '),
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((parts) => parts.map(([flag, name, after]) => `%${flag}${name}${after}`).join(''))

/** Each filter with its inputs and arguments. */
const CASES: readonly [
  filter: string,
  input: fc.Arbitrary<Json>,
  ...given: fc.Arbitrary<Json>[],
][] = [
  ['append', text, text],
  ['prepend', text, text],
  ['upcase', text],
  ['downcase', text],
  ['capitalize', text],
  ['strip', text],
  ['lstrip', text],
  ['rstrip', text],
  ['strip_newlines', text],
  ['newline_to_br', text],
  ['strip_html', text],
  ['replace', text, some, text],
  ['replace_first', text, some, text],
  ['replace_last', text, some, text],
  ['remove', text, some],
  ['remove_first', text, some],
  ['remove_last', text, some],
  ['split', text, separator],
  ['split', trimmed, fc.constant(' ')],
  ['truncate', text, count, text],
  ['truncate', text, count],
  ['slice', text, fc.integer({ min: -40, max: 40 }), fc.integer({ min: 0, max: 40 })],
  ['slice', numbers, fc.integer({ min: -40, max: 40 }), fc.integer({ min: 0, max: 40 })],
  ['escape', unquoted],
  ['escape_once', unquoted.filter((it) => !it.includes('&'))],
  ['url_encode', plain],
  ['url_decode', plain.map((it) => encodeURIComponent(it).replaceAll('%20', '+'))],
  ['base64_encode', text],
  ['base64_decode', text.map((it) => Buffer.from(it).toString('base64'))],
  ['size', text],
  ['size', scalars],
  ['first', scalars.filter((it) => it.length > 0)],
  ['last', scalars.filter((it) => it.length > 0)],
  ['join', scalars, text],
  ['join', words],
  ['reverse', scalars],
  ['sort', numbers],
  ['sort', words],
  ['sort', records, fc.constant('size')],
  ['sort_natural', words.map((all) => all.filter((it) => it !== 'ä'))],
  ['uniq', scalars],
  ['compact', fc.array(fc.oneof(whole, fc.constant(null)))],
  ['concat', scalars, scalars],
  ['map', records, fc.constant('name')],
  ['where', records, fc.constant('name'), fc.constantFrom('a', 'b')],
  ['reject', records, fc.constant('name'), fc.constantFrom('a', 'b')],
  ['find', records, fc.constant('name'), fc.constantFrom('a', 'b')],
  ['find_index', records, fc.constant('name'), fc.constantFrom('a', 'b')],
  ['has', records, fc.constant('name'), fc.constantFrom('a', 'b')],
  ['has', records, fc.constantFrom('name', 'none')],
  ['sum', numbers],
  ['sum', records, fc.constant('size')],
  ['abs', number],
  ['ceil', number],
  ['floor', number],
  ['round', number],
  ['round', decimal, fc.integer({ min: 0, max: 4 })],
  ['plus', number, number],
  ['minus', number, number],
  ['times', whole, number],
  ['divided_by', decimal.filter((it) => !Number.isInteger(it)), divisor],
  ['divided_by', whole, divisor.map((it) => `${it}.0`)],
  ['modulo', number, divisor],
  ['at_least', number, number],
  ['at_most', number, number],
  ['default', fc.oneof(text, scalars, fc.constant(null), fc.constant(false)), text],
  ['plus', whole.map(String), whole.map(String)],
  ['date', moment, format],
  ['date', fc.integer({ min: -2_000_000_000, max: 4_000_000_000 }), format],
]

describe('standard filters say what liquidjs says', () => {
  for (const [filter, input, ...given] of CASES) {
    test(`${filter}${given.length > 0 ? ` of ${given.length}` : ''}`, () => {
      const names = ['a', 'b', 'c'].slice(0, given.length)
      const args = names.map((name) => `data.${name}`).join(', ')
      const source = `data.it | ${filter}${given.length > 0 ? `: ${args}` : ''}`
      fc.assert(
        fc.property(input, fc.tuple(...given), (it, values) => {
          const data: JsonObject = { it }
          for (const [index, name] of names.entries()) data[name] = values[index]!
          const [actual, expected] = [ours(source, data), theirs(source, data)]
          if (typeof actual === 'number' && typeof expected === 'number') {
            assertClose(actual, expected)
          } else assert.deepEqual(actual, expected)
        }),
      )
    })
  }
})

function ours(source: string, data: Json): Json {
  const random = { bytes: (length: number) => new Uint8Array(length) }
  return evaluate(parseTemplate(`{{ ${source} }}`), { variables: { data }, random })
}

/** liquidjs computes in doubles, so that its last digits are noise; test/decimals has every digit. */
function assertClose(actual: number, expected: number): void {
  const noise = 1e-12 * Math.max(Math.abs(expected), 1000)
  assert.ok(Math.abs(actual - expected) < noise, `${actual} is not ${expected}`)
}

/** Liquid has negative zero; JSON does not. */
function theirs(source: string, data: Json): Json {
  const value = inUtc(() => (liquid.evalValueSync(source, { data }) ?? null) as Json)
  return value === 0 ? 0 : value
}
