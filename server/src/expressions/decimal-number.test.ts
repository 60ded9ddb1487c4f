import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkDecimals } from '../../test/decimals/run.ts'
import * as fc from '../../test/kit/fast-check.ts'
import { SEED } from '../../test/kit/seed.ts'
import type { Json } from '../base/json.ts'
import { DecimalNumber } from './decimal-number.ts'
import { CostBudget, evaluate, parseTemplate } from './template.ts'

test('chains of math filters compute what exact fractions do, rounded to 34 digits', () => {
  checkDecimals({ count: 2_000, seed: SEED })
})

test('a number that no filter changes stays the same double', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (it) => {
      const kept = Number.isInteger(it) && !Number.isSafeInteger(it) ? 0.5 : it
      assert.equal(DecimalNumber.from(kept).toDouble(), kept + 0)
    }),
  )
})

/** More than any one computation may cost, in characters of work. */
const COMPUTATION_MOST = 100_000

test('a computation costs no more than a constant, whatever its operands', () => {
  const digits = '7'.repeat(380)
  const operands = ['0', '1e400', '1e-400', '-9', digits, `0.${digits}`, `3.${digits}e399`]
  const all = [...operands, `3.${digits}e-399`, `${digits}e-400`, 1e308, 5e-324, 0.1]
  for (const filter of ['plus', 'minus', 'times', 'divided_by', 'modulo', 'at_least']) {
    const template = parseTemplate(`{{ data.it | ${filter}: data.by | append: '' }}`)
    for (const it of all) {
      for (const by of all) {
        const budget = new CostBudget(COMPUTATION_MOST, Infinity)
        attempt(() => evaluate(template, { ...over({ it, by }), costBudget: budget }))
        assert.equal(budget.isExhausted, false, `${filter} of ${it} and ${by}`)
      }
    }
  }
})

test('a number has 400 characters at most, as text and as literal', () => {
  const number = (length: number) => `1.${'0'.repeat(length - 3)}1`
  assert.equal(valueOf('{{ data | minus: 1 | times: "1e398" }}', number(400)), 1)
  const tooLong = { reason: 'number_required' }
  assert.throws(() => valueOf('{{ data | minus: 1 }}', number(401)), tooLong)
  assert.equal(valueOf(`{{ ${number(400)} | minus: 1 | times: "1e398" }}`), 1)
  assert.equal(valueOf(`{{ 1 | minus: ${number(400)} | times: "1e398" }}`), -1)
  // A longer literal is the double nearest to it, as it is without a filter.
  assert.equal(valueOf(`{{ ${number(401)} | minus: 1 | times: "1e398" }}`), 0)
})

test('a number beyond 1e±400 is refused, or 0', () => {
  const outOfRange = { reason: 'number_out_of_range' }
  assert.equal(valueOf('{{ "9.9e400" | times: "1e-400" }}'), 9.9)
  assert.throws(() => valueOf('{{ data | times: "1e-400" }}', '1e401'), outOfRange)
  assert.equal(valueOf('{{ "1e-400" | times: "1e400" }}'), 1)
  assert.equal(valueOf('{{ "9.9e-401" | times: "1e400" }}'), 0)
})

function attempt(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    assert.equal((error as { reason?: string }).reason, 'number_out_of_range')
  }
}

function valueOf(template: string, data: Json = null): Json {
  return evaluate(parseTemplate(template), over(data))
}

function over(data: Json) {
  return { variables: { data }, random: { bytes: (length: number) => new Uint8Array(length) } }
}
