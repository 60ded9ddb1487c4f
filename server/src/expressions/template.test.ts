import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import type { Json } from '../base/json.ts'
import { ExpressionError } from './expression-error.ts'
import { scan } from './scan.ts'
import { evaluate, evaluateText, parseTemplate, type Scope } from './template.ts'

const random = { bytes: (length: number) => new Uint8Array(length) }

function over(data: Json, metadata?: Json): Scope {
  return { variables: metadata === undefined ? { data } : { data, metadata }, random }
}

function vectorsOf<Vector>(name: string): Vector[] {
  const url = new URL(`../../test/vectors/expressions/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(url, 'utf8')) as Vector[]
}

interface Documented {
  readonly comment: string
  readonly data: Json
  readonly expression: string
  readonly expected?: Json
  readonly error?: string
}

const VALUES = [...vectorsOf<Documented>('documented'), ...vectorsOf<Documented>('standard')]

for (const { comment, data, expression, expected, error } of VALUES) {
  test(`evaluate() gives what is documented: ${expression}: ${comment}`, () => {
    const evaluated = () => evaluate(parseTemplate(expression), over(data))
    if (error !== undefined) assert.throws(evaluated, { reason: error })
    else assert.deepEqual(evaluated(), expected)
  })
}

interface Wrong {
  readonly comment: string
  readonly template: string
  readonly reason: string
  readonly position: number
}

for (const { comment, template, reason, position } of vectorsOf<Wrong>('syntax-errors')) {
  test(`parseTemplate() says what is wrong and where: ${template}: ${comment}`, () => {
    const error = { name: 'ExpressionError', reason, position }
    assert.throws(() => parseTemplate(template), error)
  })
}

test('evaluateText() gives text, and null where there is none', () => {
  const cases: [template: string, data: Json, text: string | null][] = [
    ['{{ data }}', 'x', 'x'],
    ['{{ data }}', 12, '12'],
    ['{{ data }}', false, 'false'],
    ['{{ data }}', '', null],
    ['{{ data }}', null, null],
    ['{{ data.a }}', {}, null],
    ['{{ data.a }}{{ data.b }}', {}, null],
    ['{{ data }}', { a: [1] }, '{"a":[1]}'],
  ]
  for (const [template, data, text] of cases) {
    assert.equal(evaluateText(parseTemplate(template), over(data)), text)
  }
})

test('evaluate() knows of metadata where it is handed in', () => {
  const template = parseTemplate('{{ data }}-{{ metadata.owner }}')
  assert.equal(evaluate(template, over('x', { owner: 'me' })), 'x-me')
  assert.equal(evaluate(template, over('x')), 'x-')
})

test('parseTemplate() gives the same template for the same text', () => {
  assert.equal(parseTemplate('{{ data.same }}'), parseTemplate('{{ data.same }}'))
})

test('parseTemplate() tells text from templates', () => {
  assert.equal(parseTemplate('a literal id').literal, 'a literal id')
  assert.equal(parseTemplate('').literal, '')
  assert.equal(parseTemplate('{{ data }}').literal, null)
})

test('scan() splits text from expressions, and says where each stands', () => {
  assert.deepEqual(
    [...scan('a {{ 384-28-3948 | last4 }}{{token: x@y.z}} }}')],
    [
      { kind: 'text', text: 'a ', start: 0 },
      { kind: 'expression', text: ' 384-28-3948 | last4 ', start: 4 },
      { kind: 'expression', text: 'token: x@y.z', start: 29 },
      { kind: 'text', text: ' }}', start: 43 },
    ],
  )
  assert.deepEqual([...scan('')], [])
})

test('scan() loses nothing', () => {
  const pieces = fc.array(fc.constantFrom('{', '}', '{{', '}}', 'a', ' '))
  fc.assert(
    fc.property(pieces, (pieces) => {
      const text = pieces.join('')
      let segments
      try {
        segments = [...scan(text)]
      } catch (error) {
        return assert.ok(error instanceof ExpressionError && text.includes('{{'))
      }
      const again = segments.map((it) => (it.kind === 'text' ? it.text : `{{${it.text}}}`)).join('')
      assert.equal(again, text)
      for (const it of segments)
        assert.equal(text.slice(it.start, it.start + it.text.length), it.text)
    }),
  )
})

test('an error counts code points of the template from 1', () => {
  for (const [template, character] of [
    ['{{ data | nope }}', 11],
    ['\u{1f600}{{ data | nope }}', 12],
    ['\u{1f600}{{ data }}\u{1f600}{{ data', 13],
    ['{{ data }} {{ data | upcase, x }}', 28],
  ] as const) {
    assert.throws(
      () => parseTemplate(template),
      (error: Error) => error.message.endsWith(` (at character ${character})`),
      template,
    )
  }
})
