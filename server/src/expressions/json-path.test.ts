import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { JSONPathEnvironment } from 'json-p3'
import type { Json } from '../base/json.ts'
import { parseJsonPath } from './json-path.ts'
import { EvaluationRun } from './evaluation-run.ts'

const STORE = {
  store: {
    book: [
      { author: 'Nigel Rees', title: 'Sayings', price: 8.95 },
      { author: 'Evelyn Waugh', title: 'Sword', price: 12.99 },
      { author: 'Herman Melville', title: 'Moby Dick', isbn: '0-553-21311-3', price: 8.99 },
    ],
    bicycle: { color: 'red', price: 19.95 },
  },
}

test('parseJsonPath() understands the paths JSONPath was first described with', () => {
  const counts: Readonly<Record<string, number>> = {
    '$.store.book[*].author': 3,
    '$..author': 3,
    '$.store.*': 2,
    '$.store..price': 4,
    '$..book[2]': 1,
    '$..book[(@.length-1)]': 1,
    '$..book[-1:]': 1,
    '$..book[0,1]': 2,
    '$..book[:2]': 2,
    '$..book[?(@.isbn)]': 1,
    '$..book[?(@.price<10)]': 2,
    '$..*': 18,
    "$['store']['bicycle']['color']": 1,
  }
  for (const [path, count] of Object.entries(counts)) {
    assert.equal(valuesOf(path, STORE)?.length, count, path)
  }
})

test('parseJsonPath() refuses what is no path, and patterns', () => {
  const paths = [
    '',
    'number',
    '$.',
    '$..',
    '$.a b',
    '@.a',
    '$[',
    "$['a'",
    '$[?@.a=1]',
    '$[?@.a=~/x/]',
  ]
  const patterns = ["$[?match(@.a, 'a')]", "$[?search(@.a, 'a')]"]
  for (const path of [...paths, ...patterns, `$${'.a'.repeat(3000)}`]) {
    assert.equal(parseJsonPath(path), null, path)
  }
})

test('parseJsonPath() refuses tests that json-p3 takes and the standard does not', () => {
  const tests = [
    '!1<2',
    '1<2<3',
    '1<(2<3)',
    '(1<2)==true',
    '!@.a==1',
    '@.a==!@.b',
    '!true',
    '!length(@)',
    '@[?!1<2]',
    'count(@[?!1<2])==1',
    '@.a && (@.b || !true)',
  ]
  for (const it of tests) assert.equal(parseJsonPath(`$[?${it}]`), null, it)
})

test('a path leads where json-p3 itself would go', () => {
  const names = ['a', 'b', 'c']
  const scalar = fc.oneof(
    fc.constantFrom(...names),
    fc.integer({ min: -2, max: 2 }),
    fc.constantFrom(null, true),
  )
  const data: fc.Arbitrary<Json> = fc.letrec<{ tree: Json }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      scalar,
      fc.dictionary(fc.constantFrom(...names), tie('tree'), { noNullPrototype: true }),
      fc.array(tie('tree'), { maxLength: 4 }),
    ),
  })).tree
  const name = fc.constantFrom(...names)
  const index = fc.integer({ min: -5, max: 5 })
  const bound = fc.option(index, { nil: '' })
  const singular = fc
    .array(
      fc.oneof(
        name.map((it) => `.${it}`),
        index.map((it) => `[${it}]`),
      ),
      { maxLength: 2 },
    )
    .map((it) => it.join(''))
  const operand = fc.oneof(
    singular.map((it) => `@${it}`),
    singular.map((it) => `$${it}`),
    fc.constantFrom(
      "'a'",
      '1',
      '-1',
      'null',
      'true',
      'length(@)',
      'length(@.a)',
      'count(@.*)',
      'count($..a)',
      'value(@..b)',
    ),
  )
  const comparison = fc
    .tuple(operand, fc.constantFrom('==', '!=', '<', '<=', '>', '>='), operand)
    .map((it) => it.join(' '))
  const existence = fc.constantFrom('@.a', '!@.b', '@..c', '$.a', '@[?@.a]', '!(@.a && @.b)')
  const condition = fc
    .tuple(
      fc.oneof(comparison, existence),
      fc.constantFrom('&&', '||'),
      fc.oneof(comparison, existence),
    )
    .map((it) => it.join(' '))
  const selector = fc.oneof(
    name.map((it) => `'${it}'`),
    index.map(String),
    fc.constant('*'),
    fc
      .tuple(bound, bound, fc.constantFrom('', ':', ':2', ':-1', ':-2', ':0'))
      .map(([a, b, step]) => `${a}:${b}${step}`),
    fc.oneof(comparison, existence, condition).map((it) => `?${it}`),
  )
  const bracketed = fc
    .array(selector, { minLength: 1, maxLength: 2 })
    .map((it) => `[${it.join(',')}]`)
  const segment = fc.oneof(
    name.map((it) => `.${it}`),
    name.map((it) => `..${it}`),
    bracketed,
    bracketed.map((it) => `..${it}`),
    fc.constantFrom('.*', '..*'),
  )
  const path = fc.array(segment, { maxLength: 3 }).map((it) => `$${it.join('')}`)
  const environment = new JSONPathEnvironment()
  fc.assert(
    fc.property(path, data, (path, data) => {
      assert.deepEqual(valuesOf(path, data), environment.query(path, data).values())
    }),
    { numRuns: 3_000 },
  )
})

/** Tests that take no step: they use literals or the current node. */
const STILL = [
  '1>2',
  '1==2',
  "'a'>='b'",
  'null!=null',
  '(1>2)',
  '!(1<2)',
  'length("")>2',
  'count(@)>2',
  'value(@)==2',
  '@<0',
  '!@',
]

for (const still of STILL) {
  test(`?${still}, over and over, is too much work`, () => {
    const often = Array<string>(Math.floor(3_900 / (still.length + 2))).fill(still)
    assert.throws(() => valuesOf(`$[?${often.join('||')}]`, Array<Json>(10_000).fill(0)), {
      reason: 'work_too_large',
    })
  })
}

test('arrays that are compared item by item are too much work when they are long', () => {
  const items = Array<Json>(100_000).fill(0)
  const rows = Array.from({ length: 20 }, () => [...items])
  assert.throws(() => valuesOf('$[?@ == $[0]]', rows), { reason: 'work_too_large' })
})

test('a path with tests is followed through tens of thousands of items', () => {
  const books = Array.from({ length: 20_000 }, (_, at) => ({ at, price: at % 20, name: `n${at}` }))
  const wanted = "$[?@.price < 10 && @.at >= 0 && (@.name == 'n7' || @.name == 'n8')]"
  assert.equal(valuesOf(wanted, books)?.length, 2)
})

function valuesOf(path: string, data: Json): Json[] | null {
  const random = { bytes: (length: number) => new Uint8Array(length) }
  return parseJsonPath(path)?.(data, new EvaluationRun({ variables: {}, random }, false)) ?? null
}
