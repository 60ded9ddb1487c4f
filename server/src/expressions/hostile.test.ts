/** Attacks by malicious expressions or malicious data, which must fail. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import type { Json } from '../base/json.ts'
import {
  EXPRESSION_CHARS_MAX,
  EXPRESSION_RESULT_CHARS_MAX,
  EXPRESSION_WORK_CHARS_MAX,
  MASK_CHARS_MAX,
  MASK_NODES_MAX,
  MiB,
} from '../base/limits.ts'
import { ExpressionError, FilterError } from './expression-error.ts'
import { applyFilters, parseFilters } from './filters.ts'
import type { Parameter } from './filters/filter.ts'
import { FILTERS } from './filters/registry.ts'
import { evaluateMask, parseMask, type Mask } from './mask.ts'
import { CostBudget, evaluate, evaluateText, parseTemplate } from './template.ts'

/** Members that every object inherits. */
const INHERITED = [
  'constructor',
  'hasOwnProperty',
  'isPrototypeOf',
  'propertyIsEnumerable',
  'toLocaleString',
  'toString',
  'valueOf',
  '__proto__',
  '__defineGetter__',
  '__defineSetter__',
  '__lookupGetter__',
  '__lookupSetter__',
]

describe('inherited names', () => {
  for (const name of INHERITED) {
    test(`${name} is no filter, no variable and no property`, () => {
      const unknown = { name: 'ExpressionError', reason: 'filter_unknown' }
      assert.throws(() => parseTemplate(`{{ data | ${name} }}`), unknown)
      for (const data of [{}, [], [{}], 'text', 1, true, null]) {
        for (const subject of [
          name,
          `data.${name}`,
          `data['${name}']`,
          `data.${name}.${name}`,
          `data.first.${name}`,
        ]) {
          assert.equal(
            valueOf(`{{ ${subject} }}`, data),
            null,
            `${subject} of ${JSON.stringify(data)}`,
          )
        }
        assert.equal(valueOf(`{{ data | json: "$['${name}']" }}`, data), null)
        assert.deepEqual(valueOf(`{{ data | map: '${name}' | compact }}`, data), [])
      }
    })

    test(`${name} is an ordinary name where the data own it`, () => {
      const data = JSON.parse(`{"${name}": "own"}`) as Json
      assert.equal(valueOf(`{{ data.${name} }}`, data), 'own')
      assert.equal(valueOf(`{{ data | json: "$['${name}']" }}`, data), 'own')
    })
  }
})

describe('arbitrary input', () => {
  /** Text that often looks like an expression. */
  const signs = '{{ }} {% | : , . [ ] ( ) - $ ? @ "'.split(' ')
  const words = [
    "'",
    ' ',
    '\n',
    'data',
    'nil',
    'true',
    '1',
    '-2.5',
    '$.a',
    "'x'",
    '"$..*"',
    '\ud800',
  ]
  const pieces = [...signs, ...words, ...FILTERS.keys()]
  const template = fc
    .array(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...pieces) }, fc.string()))
    .map((it) => it.join(''))
  const wrapped = fc
    .tuple(fc.constantFrom(...FILTERS.keys()), fc.array(argument(), { maxLength: 4 }))
    .map(([name, args]) => `{{ data | ${name}${args.length > 0 ? ': ' : ''}${args.join(', ')} }}`)
  // As received: JSON has no -0 after serialization.
  const data = fc.jsonValue({ maxDepth: 3 }).map((it) => JSON.parse(JSON.stringify(it)) as Json)

  test('parseTemplate(), parseFilters() and parseMask() throw nothing but ExpressionError', () => {
    fc.assert(
      fc.property(fc.oneof(template, fc.string({ unit: 'binary' }), wrapped), (it) => {
        for (const parse of [parseTemplate, parseFilters, parseMask])
          expectOnly(ExpressionError, () => parse(it))
      }),
      { numRuns: 2_000 },
    )
  })

  test('evaluate() throws nothing but FilterError, and gives JSON', () => {
    fc.assert(
      fc.property(fc.oneof(wrapped, template), data, (it, data) => {
        const parsed = expectOnly(ExpressionError, () => parseTemplate(it))
        if (parsed === undefined) return
        const value = expectOnly(FilterError, () => evaluate(parsed, over(data)))
        if (value !== undefined) assert.deepEqual(JSON.parse(JSON.stringify(value)), value)
        expectOnly(FilterError, () => evaluateText(parsed, over(data)))
      }),
      { numRuns: 5_000 },
    )
  })

  test('evaluateMask() that closes throws nothing', () => {
    fc.assert(
      fc.property(fc.oneof(wrapped, template), data, (it, data) => {
        const mask = expectOnly(ExpressionError, () => parseMask({ a: it, b: [it] }))
        if (mask !== undefined) evaluateMask(mask, over(data), 'close')
      }),
      { numRuns: 2_000 },
    )
  })

  function argument(): fc.Arbitrary<string> {
    return fc.oneof(
      fc.constantFrom("'x'", "'-'", "''", "'true'", "'$.a'", "'$..*'", "'sha-256'", "'YY/MM'"),
      fc.constantFrom(
        '0',
        '1',
        '4',
        '-3',
        '2.5',
        '100',
        'data',
        'data.a',
        'data[0]',
        'nil',
        'true',
      ),
    )
  }
})

test('what data hold is never evaluated, nor shown in an error', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 12 }), (secret) => {
      const canary = `{{ data }}${secret}`
      assert.equal(valueOf('{{ data }}', canary), canary)
      assert.equal(valueOf('a {{ data }}', canary), `a ${canary}`)
      const failing = '{{ data | to_number }}'
      assert.throws(
        () => valueOf(failing, canary),
        (error: Error) => !String(error.stack).includes(canary),
      )
    }),
  )
})

test('an error does not repeat the text of an expression', () => {
  const source = "{{ data | hmac: 'md5', 'key of the tenant' | to_base16 }}"
  assert.throws(
    () => parseTemplate(source),
    (error: Error) => !error.message.includes('key of'),
  )
})

test('a template is bounded in length, a text without expressions is not', () => {
  const padded = (length: number) => '{{ data }}'.padEnd(length, 'x')
  assert.doesNotThrow(() => parseTemplate(padded(EXPRESSION_CHARS_MAX)))
  assert.throws(() => parseTemplate(padded(EXPRESSION_CHARS_MAX + 1)), {
    reason: 'expression_too_long',
  })
  assert.doesNotThrow(() => parseTemplate('x'.repeat(EXPRESSION_CHARS_MAX + 1)))
})

/** The error once the work of one evaluation is used up, or its result is too long. */
const [WORK, RESULT] = ['work_too_large', 'result_too_large'] as const

/** The minimum cost of looking at a value. */
const LOOK_CHARS_MIN = 16

/** Never exhausted. */
class CountingCostBudget extends CostBudget {
  work = 0

  constructor() {
    super(Infinity, Infinity)
  }

  override spend(chars: number): void {
    this.work += chars
  }
}

describe('costly expressions end soon', () => {
  const megabytes = 'a'.repeat(4 * MiB)
  const half = 'a'.repeat(MiB)
  const third = 'a'.repeat(MiB / 3)
  const pairs = '😀'.repeat(2 * MiB)
  const numbers = Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 300_000)
  const records = Array.from({ length: 50_000 }, (_, index) => ({ name: `n${index}`, at: index }))
  const members = Object.fromEntries(numbers.slice(0, 60_000).map((it) => [`k${it}`, it]))
  /** The expected error, or the least and the most work allowed. */
  type Ending = typeof WORK | typeof RESULT | readonly [least: number, most: number]
  const cases: readonly [expression: string, data: Json, ending: Ending][] = [
    ['{{ data.text | remove: data.wanted }}', { text: half, wanted: `${third}b${third}` }, WORK],
    [`{{ data | replace: '${'a'.repeat(1500)}b${'a'.repeat(1500)}' }}`, half, WORK],
    [`{{ data | replace: 'a', '${'x'.repeat(3000)}' }}`, half, RESULT],
    ["{{ data | replace: '', 'xx' }}", megabytes, WORK],
    [repeated("{{ data | split: '' | sort | join: '' }}"), megabytes, WORK],
    [repeated("{{ data | hmac: 'sha-512', data | to_base64 }}"), megabytes, WORK],
    [repeated('{{ data | to_base16 }}'), megabytes, RESULT],
    [repeated('{{ data | size }}'), members, WORK],
    [repeated('{{ data.size }}'), pairs, WORK],
    [repeated('{{ data | size }}'), pairs, WORK],
    [repeated('{{ data | last4 }}'), pairs, WORK],
    [repeated('{{ data | stringify }}'), records, WORK],
    [`{{ data${' | append: data'.repeat(200)} }}`, megabytes, RESULT],
    [`{{ data${' | concat: data'.repeat(200)} }}`, numbers, WORK],
    [`{{ data${' | upcase'.repeat(400)} }}`, megabytes, WORK],
    [`{{ data${' | escape'.repeat(400)} }}`, '&'.repeat(1000), WORK],
    [`{{ data${' | url_encode'.repeat(300)} }}`, '%'.repeat(1000), WORK],
    [`{{ data${' | sort | reverse'.repeat(200)} }}`, numbers, WORK],
    ['{{ data | strip_html }}', '<script>'.repeat(200_000), [1_600_000, EXPRESSION_WORK_CHARS_MAX]],
    [
      '{{ data | strip_html }}',
      '<!--><style>'.repeat(100_000),
      [1_200_000, EXPRESSION_WORK_CHARS_MAX],
    ],
    ["{{ data | pad_left: 5000000, 'x' | append: data | append: data }}", megabytes, WORK],
    ['{{ data | alias_preserve_length }}', megabytes, WORK],
    ['{{ data | sum }}', numbers.map((it) => it / 7), WORK],
    ['{{ data | sum }}', numbers, [2 * 300_000, EXPRESSION_WORK_CHARS_MAX]],
    // Each sum has digits from one end of the range to the other.
    ['{{ data | sum }}', numbers.slice(0, 20_000).flatMap(() => ['1e399', '1e-399']), WORK],
    [repeated('{{ data.a | modulo: data.b }}'), { a: '1e399', b: '7e-399' }, [500_000, 1_500_000]],
    [
      "{{ data.list | where: 'm', data.m }}",
      { list: [{ m: members }, { m: members }], m: members },
      WORK,
    ],
    ['{{ data | first }}{{ data | last }}', megabytes, [2 * LOOK_CHARS_MIN, 100]],
    ['{{ data | truncatewords: 3 }}', ' a'.repeat(2 * MiB), WORK],
    ['{{ data | truncatewords: 3 }}', `a${' '.repeat(MiB)}b`, [8 * MiB, EXPRESSION_WORK_CHARS_MAX]],
    ["{{ data | json: '$..[?@..[?@..[?@..name]]]' }}", records, WORK],
    ["{{ data | json: '$[?count($..*) == 1]' }}", records, WORK],
    // Each differs in length from the whole, so their content is not compared.
    ["{{ data | json: '$[?@ == $]' }}", [numbers, numbers, numbers], [6 * LOOK_CHARS_MIN, 1_000]],
    ["{{ data | json: '$..*..*..*..*' }}", records, WORK],
    [`{{ data | json: '$..[${'?@.zz,'.repeat(500)}?@.zz]' }}`, records, WORK],
    [`{{ data | json: '$${'[?@'.repeat(900)}${']'.repeat(900)}' }}`, records, WORK],
    [
      `{{ data | json: '$[?${'('.repeat(1800)}@.a${')'.repeat(1800)}]' }}`,
      records,
      [50_000 * LOOK_CHARS_MIN, EXPRESSION_WORK_CHARS_MAX],
    ],
  ]
  for (const [expression, data, ending] of cases) {
    test(expression.slice(0, 70), (t) => {
      const scanned = countScannedChars(t)
      const costBudget = new CountingCostBudget()
      const evaluated = () => evaluate(parseTemplate(expression), { ...over(data), costBudget })
      if (typeof ending === 'string') {
        assert.throws(evaluated, { name: 'FilterError', reason: ending })
      } else {
        evaluated()
        const [least, most] = ending
        const { work } = costBudget
        assert.ok(work >= least && work <= most, `${work} characters of work`)
      }
      // Searching for a few marks once from start to end is linear, restarting at each of them is not.
      if (typeof data === 'string') assert.ok(scanned() <= EXPRESSION_WORK_CHARS_MAX)
    })
  }

  /** Counts the characters that `indexOf()` looks at. A mock would keep every call, and there are millions. */
  function countScannedChars(t: TestContext): () => number {
    let scanned = 0
    const indexOf: (this: string, wanted: string, from: number) => number = Reflect.get(
      String.prototype,
      'indexOf',
    )
    const counting = function (this: string, wanted: string, from = 0): number {
      const found = indexOf.call(this, wanted, from)
      scanned += (found < 0 ? this.length : found) - from
      return found
    }
    Reflect.set(String.prototype, 'indexOf', counting)
    t.after(() => Reflect.set(String.prototype, 'indexOf', indexOf))
    return () => scanned
  }
})

describe('no filter is free', () => {
  /** Arguments of the filters that require some. */
  const given: Readonly<Record<string, string>> = {
    json: "'$..*'",
    hmac: "'sha-512', data",
    concat: 'data',
    date: "'%F'",
    card_exp: "'MM'",
    pad_left: "9, 'x'",
    pad_right: "9, 'x'",
    slice: '0, 3',
    truncate: '3',
    map: "'a'",
    where: "'a'",
    reject: "'a'",
    find: "'a'",
    find_index: "'a'",
    has: "'a'",
    reveal_last: '4',
    divided_by: '3',
  }
  const others = new Set(['replace', 'replace_first', 'replace_last', 'default', 'split'])
  const texts = new Set(['append', 'prepend', 'remove', 'remove_first', 'remove_last', ...others])
  const numbers = new Set(['plus', 'minus', 'times', 'modulo', 'at_least', 'at_most'])
  const megabytes: Readonly<Record<string, Json>> = {
    'short characters': 'é'.repeat(4 * MiB),
    'long characters': '😀'.repeat(2 * MiB),
    records: Array.from({ length: 200_000 }, () => ({ a: ['x'] })),
  }
  /** Filters whose time does not depend on the length of the data. */
  const constant: ReadonlyMap<string, readonly string[]> = new Map([
    ['json', ['short characters', 'long characters']],
    ['size', ['records']],
    ['first', ['short characters', 'long characters', 'records']],
    ['last', ['short characters', 'long characters', 'records']],
  ])
  for (const name of FILTERS.keys()) {
    test(`${name}: a mask full of it ends soon`, () => {
      const first = texts.has(name) ? "'x'" : numbers.has(name) ? '2' : given[name]
      const bytes = name === 'hmac' ? ' | to_base64' : ''
      const expression = `{{ data | ${name}${first === undefined ? '' : `: ${first}`}${bytes} }}`
      const chars = MASK_CHARS_MAX - LAST.length
      const most = Math.min(MASK_NODES_MAX - 2, Math.floor(chars / expression.length))
      const mask = parseMask([...Array<string>(most).fill(expression), LAST])
      for (const [kind, data] of Object.entries(megabytes)) {
        const [shown, work] = evaluated(mask, data)
        if (constant.get(name)?.includes(kind) === true) {
          assert.ok(work >= most * LOOK_CHARS_MIN, `${work} characters of work over ${kind}`)
        } else {
          // All that work is bounded by the budget of one mask, which is used up before its end.
          assert.notEqual((shown as Json[]).at(-1), 'ab', `${work} characters of work over ${kind}`)
        }
      }
    })
  }

  /** Shows as `ab` if work is left for it. */
  const LAST = "{{ 'a' | append: 'b' }}"

  function evaluated(mask: Mask, data: Json): [shown: Json, work: number] {
    const costBudget = new CountingCostBudget()
    const shown = evaluateMask(mask, { ...over(data), costBudget }, 'close')
    return [shown, costBudget.work]
  }
})

describe('an argument that the data hold', () => {
  const data = { short: '4242', long: 'é'.repeat(1.1 * MiB) }
  for (const [name, { parameters, bytes }] of FILTERS) {
    if (parameters.length === 0) continue
    test(`costs at least its length, whatever ${name} does with it`, () => {
      for (const [index] of parameters.entries()) {
        const args = parameters.map((it, at) => (at === index ? 'data.long' : literalFor(it)))
        const encoder = bytes === 'made' ? ' | to_base64' : ''
        const template = parseTemplate(`{{ data.short | ${name}: ${args.join(', ')}${encoder} }}`)
        const costBudget = new CostBudget(data.long.length - 1, Infinity)
        expectOnly(FilterError, () => evaluate(template, { ...over(data), costBudget }))
        assert.ok(costBudget.isExhausted, `as argument ${index + 1}`)
      }
    })
  }

  for (const filter of [
    'card_bin: data.long',
    "card_mask: true, true, 'X', data.long",
    "reveal: 1, 1, 'X', data.long",
  ]) {
    test(`costs more where each of its characters is looked at: ${filter}`, () => {
      const tooMuch = { name: 'FilterError', reason: 'work_too_large' }
      assert.throws(() => valueOf(`{{ data.short | ${filter} }}`, data), tooMuch)
    })
  }

  test('is not looked for in a secret character by character for nothing', () => {
    const kept = String.fromCharCode(...Array.from({ length: 1_000 }, (_, index) => 0x4e00 + index))
    const masked = "{{ data.secret | reveal: 1, 1, 'X', data.kept }}"
    assert.throws(() => valueOf(masked, { secret: 'a'.repeat(100_000), kept }), {
      reason: 'work_too_large',
    })
    assert.equal(valueOf(masked, { secret: 'a'.repeat(10), kept }), 'aXXXXXXXXa')
  })

  function literalFor({ read }: Parameter<unknown>): string {
    const known = ['1', 'x', 'true', 'sha-256', '$.a'].find((it) => {
      return expectOnly(FilterError, () => [read(it, null)]) !== undefined
    })
    return `'${known}'`
  }
})

test('a result may have EXPRESSION_RESULT_CHARS_MAX characters and no more', () => {
  const max = EXPRESSION_RESULT_CHARS_MAX
  const tooLarge = { name: 'FilterError', reason: 'result_too_large' }
  const most = {
    text: 'x'.repeat(max - 1),
    few: 'x'.repeat(max / 8),
    one: ['x'.repeat(Math.floor(max * 0.36))],
  }
  assert.equal((valueOf("{{ data.text | append: 'x' }}", most) as string).length, max)
  assert.throws(() => valueOf("{{ data.text | append: 'xx' }}", most), tooLarge)
  assert.equal((valueOf('{{ data.text }}x', most) as string).length, max)
  assert.throws(() => valueOf('{{ data.text }}xx', most), tooLarge)
  assert.throws(() => valueOf("{{ data.few | replace: 'x', '0123456789' }}", most), tooLarge)
  const thrice = '{{ data.one | concat: data.one | concat: data.one }}'
  assert.throws(() => valueOf(thrice, most), tooLarge)
})

test('an expression of a mask that fails costs what is hidden, before it is hidden', () => {
  const mask = parseMask('{{ data | to_number }}')
  const data = 'x'.repeat(MiB)
  const spent = (costBudget: CostBudget): boolean => {
    evaluateMask(mask, { ...over(data), costBudget }, 'close')
    return costBudget.isExhausted
  }
  assert.equal(spent(new CostBudget(1.5 * MiB, Infinity)), true)
  assert.equal(spent(new CostBudget(2.5 * MiB, Infinity)), false)
})

test('each part of a date costs, however short its name and what takes its place', () => {
  const format = "{{ '2020-01-31' | date: data }}"
  assert.equal((valueOf(format, '%F'.repeat(100_000)) as string).length, 1_000_000)
  assert.throws(() => valueOf(format, '%F'.repeat(200_000)), { reason: 'work_too_large' })
})

test('applyFilters() applies a chain to a value that no path leads to', () => {
  const chain = parseFilters("json: '$.number' | last4")
  assert.deepEqual(chain.names, ['json', 'last4'])
  const { random } = over(null)
  assert.equal(
    applyFilters(chain, { number: '4242424242424242' }, { variables: {}, random }),
    '4242',
  )
})

function repeated(expression: string): string {
  return expression.repeat(Math.floor(EXPRESSION_CHARS_MAX / expression.length))
}

function valueOf(template: string, data: Json): Json {
  return evaluate(parseTemplate(template), over(data))
}

function over(data: Json) {
  return {
    variables: { data },
    random: { bytes: (length: number) => new Uint8Array(length).fill(77) },
  }
}

/** Returns the result of `work`, or undefined if it throws an expected error. */
function expectOnly<Value>(
  kind: new (...args: never[]) => Error,
  work: () => Value,
): Value | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof kind) return undefined
    throw error
  }
}
