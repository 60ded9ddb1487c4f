import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Json } from '../base/json.ts'
import { evaluate, parseTemplate, type Scope } from './template.ts'

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

for (const { comment, data, expression, expected, error } of vectorsOf<Documented>('documented')) {
  test(`evaluate() gives what is documented: ${expression}: ${comment}`, () => {
    const template = parseTemplate(expression)
    if (error !== undefined) {
      assert.throws(() => evaluate(template, over(data)), { name: 'FilterError', reason: error })
    } else assert.deepEqual(evaluate(template, over(data)), expected)
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
