import assert from 'node:assert/strict'
import type { Json } from '../../src/base/json.ts'
import { FilterError } from '../../src/expressions/expression-error.ts'
import { evaluate, parseTemplate } from '../../src/expressions/template.ts'
import * as fc from '../kit/fast-check.ts'
import {
  doubleOf,
  OPERATIONS,
  parseExact,
  roundTo,
  ROUNDINGS,
  sumOf,
  type Exact,
} from './fractions.ts'

/** Computes so many random chains and compares each with exact fractions; throws where one differs. */
export function checkDecimals({ count, seed }: { readonly count: number; readonly seed: number }): {
  filters: number
  refused: number
} {
  const tally = { filters: 0, refused: 0 }
  const property = fc.property(subject, chain, (of, steps) => {
    const expected = compare(of, steps)
    tally.filters += steps.length + of.length - 1
    if (expected === null) tally.refused++
    // What is left shows the digits that the nearest double lacks.
    else
      compare(of, [...steps, { filter: 'minus', by: { written: String(expected), as: 'number' } }])
  })
  fc.assert(property, { numRuns: count, seed })
  return tally
}

/** Returns the expected result, null for a refusal. */
function compare(of: readonly AnyNumber[], steps: readonly Step[]): number | null {
  const { expression, data } = written(of, steps)
  const expected = computed(of, steps)
  assert.equal(evaluated(expression, data), expected, `${expression} of ${JSON.stringify(data)}`)
  return expected
}

/** A number, a text, or a literal. */
interface AnyNumber {
  readonly written: string
  readonly as: 'number' | 'text' | 'literal'
}

const digits = (maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength })
const sign = fc.constantFrom('', '', '-')
const amount = fc.integer({ min: -1_000_000, max: 1_000_000 })
const double = fc.double({ noNaN: true, noDefaultInfinity: true })
const plain = fc
  .tuple(sign, fc.oneof(digits(3), digits(20), digits(60)), fc.option(digits(40), { nil: '' }))
  .map(([sign, whole, fraction]) => sign + whole + (fraction === '' ? '' : `.${fraction}`))
/** Differs from a half by little, or not at all. */
const half = fc
  .tuple(
    sign,
    digits(34),
    fc.constantFrom('4', '5'),
    fc.constantFrom('', '0', '9'),
    fc.nat({ max: 30 }),
  )
  .map(([sign, whole, half, rest, times]) => `${sign}${whole}.${half}${rest.repeat(times)}`)
const long = fc
  .tuple(sign, digits(190), digits(190), fc.integer({ min: -420, max: 420 }))
  .map(([sign, whole, fraction, power]) => `${sign}${whole}.${fraction}e${power}`)
/** Close to the largest number, or to the smallest. */
const edge = fc
  .tuple(sign, digits(1), digits(20), fc.constantFrom('-', ''), fc.integer({ min: 390, max: 402 }))
  .map(([sign, whole, fraction, below, power]) => `${sign}${whole}.${fraction}e${below}${power}`)

const operand: fc.Arbitrary<AnyNumber> = fc.oneof(
  numbers(amount.map((it) => it / 100)),
  numbers(amount),
  numbers(fc.integer({ min: -9, max: 9 })),
  numbers(double),
  fc.record({ written: fc.oneof(plain, half), as: fc.constantFrom('text', 'literal') }),
  fc.record({
    written: fc.oneof(
      amount.map((it) => `${it}.0`),
      plain,
      half,
      long,
      edge,
    ),
    as: fc.constant('text'),
  }),
)

function numbers(of: fc.Arbitrary<number>): fc.Arbitrary<AnyNumber> {
  return of.map((it) => ({ written: String(it), as: 'number' }))
}

const list = fc.array(operand, { minLength: 2, maxLength: 8 })

/** Their sums may leave the range, and come back. */
const edges = fc.array(
  edge.map((written): AnyNumber => ({ written, as: 'text' })),
  { minLength: 2, maxLength: 6 },
)

/** One number, or several to add up: some of them cancel out. */
const subject = fc.oneof(
  { weight: 4, arbitrary: operand.map((it) => [it]) },
  list,
  fc.oneof(list, edges).map((all) => [...all, negative(all[0]!)]),
)

function negative({ written, as }: AnyNumber): AnyNumber {
  return { written: written.startsWith('-') ? written.slice(1) : `-${written}`, as }
}

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      filter: fc.constantFrom(...(Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[])),
      by: operand,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      filter: fc.constantFrom(...(Object.keys(ROUNDINGS) as (keyof typeof ROUNDINGS)[])),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      filter: fc.constant('round' as const),
      places: fc.oneof(fc.constantFrom(0, 2), fc.integer({ min: -20, max: 20 })),
    }),
  },
)

const chain = fc.array(step, { minLength: 1, maxLength: 6 })

type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

function written(
  of: readonly AnyNumber[],
  steps: readonly Step[],
): { expression: string; data: Json } {
  const data: Json[] = []
  const place = (it: AnyNumber): string => {
    if (it.as === 'literal') return it.written
    return `data[${data.push(valueOf(it)) - 1}]`
  }
  const first = of.length === 1 ? place(of[0]!) : `data[${data.push(of.map(valueOf)) - 1}] | sum`
  const filters = steps.map((it) => {
    if ('by' in it) return ` | ${it.filter}: ${place(it.by)}`
    return 'places' in it ? ` | round: ${it.places}` : ` | ${it.filter}`
  })
  return { expression: `{{ ${first}${filters.join('')} }}`, data }
}

function valueOf({ written, as }: AnyNumber): Json {
  return as === 'number' ? Number(written) : written
}

/** Returns null where the filters have to refuse. */
function computed(of: readonly AnyNumber[], steps: readonly Step[]): number | null {
  const all = of.map(exactOf)
  if (all.includes(null)) return null
  let it = of.length === 1 ? all[0]! : sumOf(all as Exact[])
  for (const step of steps) {
    if (it === null) return null
    if ('by' in step) {
      const by = exactOf(step.by)
      it = by === null ? null : OPERATIONS[step.filter](it, by)
    } else it = 'places' in step ? roundTo(it, step.places) : ROUNDINGS[step.filter](it)
  }
  return it === null ? null : doubleOf(it)
}

/** A JSON number is an integer if its value is; a text or a literal with a point is none. */
function exactOf({ written, as }: AnyNumber): Exact | null {
  const it = parseExact(written)
  return it !== null && as === 'number'
    ? { ...it, isInteger: Number.isInteger(Number(written)) }
    : it
}

function evaluated(expression: string, data: Json): Json {
  try {
    return evaluate(parseTemplate(expression), { variables: { data }, random: NO_CHANCE })
  } catch (error) {
    if (error instanceof FilterError && error.reason === 'number_out_of_range') return null
    throw error
  }
}

const NO_CHANCE = {
  bytes: (): Uint8Array => assert.fail('no filter here draws by chance'),
}
