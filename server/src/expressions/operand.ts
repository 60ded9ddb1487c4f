import type { Json } from '../base/json.ts'
import { DecimalNumber } from './decimal-number.ts'
import type { Reader } from './reader.ts'
import type { EvaluationRun, Variables } from './evaluation-run.ts'
import { lengthOf } from './text.ts'

/** The subject of an expression, or an argument of a filter: a path into the data, or a literal. */
export interface Operand {
  /** The value of a literal, and a number also as it is written. */
  readonly constant?: { readonly value: Json; readonly number: DecimalNumber | null }
  readonly read: (run: EvaluationRun) => Json
}

const NAME = /[A-Za-z_\u0080-\uffff][\w\u0080-\uffff-]*/y
const MEMBER = /[\w\u0080-\uffff-]+/y
const NUMBER = /-?\d+(?:\.\d+)?/y
const INDEX = /-?\d+/y

/**
 * Parses a literal (`'text'`, `"text"`, `12`, `-1.5`, `true`, `false`, `nil`, `null`) or a path
 * (`data`, `data.name`, `data['any name']`, `data.cards[0]`, counted from the end when negative).
 *
 * Paths see only own members of the data: a missing name is null, at any depth. Texts and arrays have a `size`, arrays a
 * `first` and a `last`. Throws `subject_invalid`.
 */
export function parseOperand(reader: Reader): Operand {
  const text = reader.quoted()
  if (text !== null) return constant(text)
  const number = reader.match(NUMBER)
  if (number !== null) return constant(Number(number), DecimalNumber.fromLiteral(number))
  const name = reader.match(NAME)
  if (name === null) throw reader.error('subject_invalid')
  if (name === 'true' || name === 'false') return constant(name === 'true')
  if (name === 'nil' || name === 'null') return constant(null)
  return pathOf(name, parseSteps(reader))
}

function parseSteps(reader: Reader): (string | number)[] {
  const steps: (string | number)[] = []
  for (;;) {
    if (reader.accept('.')) {
      const name = reader.match(MEMBER)
      if (name === null) throw reader.error('subject_invalid')
      steps.push(name)
    } else if (reader.accept('[')) {
      const name = reader.quoted()
      const index = name === null ? reader.match(INDEX) : null
      if (name === null && index === null) throw reader.error('subject_invalid')
      steps.push(name ?? Number(index))
      if (!reader.accept(']')) throw reader.error('subject_invalid')
    } else return steps
  }
}

function constant(value: Json, number: DecimalNumber | null = null): Operand {
  return { constant: { value, number }, read: () => value }
}

function pathOf(variable: string, steps: readonly (string | number)[]): Operand {
  const [first] = steps
  if (first === undefined) return { read: (run) => variableOf(run.variables, variable) }
  if (steps.length === 1) {
    return { read: (run) => memberOf(variableOf(run.variables, variable), first, run) }
  }
  return {
    read: (run) => {
      let value = variableOf(run.variables, variable)
      for (const step of steps) value = memberOf(value, step, run)
      return value
    },
  }
}

function variableOf(variables: Variables, name: string): Json {
  return Object.hasOwn(variables, name) ? variables[name]! : null
}

function memberOf(value: Json, step: string | number, run: EvaluationRun): Json {
  if (typeof value === 'string') {
    if (step !== 'size') return null
    run.spend(value.length)
    return lengthOf(value)
  }
  if (typeof value !== 'object' || value === null) return null
  if (!Array.isArray(value)) return Object.hasOwn(value, step) ? (value[step] ?? null) : null
  if (typeof step === 'number') return value.at(step) ?? null
  if (step === 'size') return value.length
  if (step === 'first') return value[0] ?? null
  if (step === 'last') return value.at(-1) ?? null
  return null
}
