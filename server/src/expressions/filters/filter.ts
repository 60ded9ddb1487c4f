import type { Json } from '../../base/json.ts'
import { EXPRESSION_RESULT_CHARS_MAX } from '../../base/limits.ts'
import type { DecimalNumber } from '../decimal-number.ts'
import { FilterError } from '../expression-error.ts'
import type { EvaluationRun } from '../evaluation-run.ts'
import { lengthOf, textOf } from '../text.ts'

/**
 * The implementation of a filter: its parameters, and its function.
 *
 * A filter is pure except for `run`, which provides randomness for aliases and the work budget. Built by filter() and its
 * siblings, which keep parameters and function in step.
 */
export interface Filter {
  readonly parameters: readonly Parameter<unknown>[]
  /** `args` has one item per parameter, as that parameter read it. Throws FilterError. */
  apply(input: FilterValue, args: readonly unknown[], run: EvaluationRun): FilterValue
  /** Whether repeated evaluation of the same value may give different results. */
  readonly random?: true
  /** Whether the filter returns bytes, which only an encoder accepts, or takes them; checked when a chain is parsed. */
  readonly bytes?: 'made' | 'taken'
  /** Whether it takes a decimal as such; for any other filter it becomes the nearest double. */
  readonly takesDecimals?: true
}

/** The value passed between filters; bytes and decimals only from a filter that returns them to one that takes them. */
export type FilterValue = Json | Uint8Array | DecimalNumber

/** A parameter of a filter. */
export interface Parameter<T> {
  readonly optional: boolean
  /** Throws `argument_invalid`. `run` is null for a literal, which is read when the template is parsed. */
  readonly read: (value: Json, run: EvaluationRun | null) => T
  /** Reads a literal number as it is written: `100.0` is not an integer. */
  readonly readLiteral?: (number: DecimalNumber) => T
}

/** The values read by parameters, in the same order. */
export type Arguments<Parameters extends readonly Parameter<unknown>[]> = {
  [Index in keyof Parameters]: Parameters[Index] extends Parameter<infer T> ? T : never
}

/** The work per character of inspecting each one. */
export const EACH = 16

/** A filter of any value. */
export function filter<const Parameters extends readonly Parameter<unknown>[]>(
  parameters: Parameters,
  apply: (input: Json, args: Arguments<Parameters>, run: EvaluationRun) => FilterValue,
): Filter {
  return { parameters, apply }
}

/**
 * A filter of text: gets the text form of any value, as in Liquid; null is empty.
 *
 * `weight` is the cost per character, in units of one copied character, which takes a few nanoseconds.
 */
export function textFilter<const Parameters extends readonly Parameter<unknown>[]>(
  parameters: Parameters,
  apply: (text: string, args: Arguments<Parameters>, run: EvaluationRun) => Json,
  weight = 1,
): Filter {
  return filter(parameters, (input, args, run) => {
    const text = textOf(input, run)
    run.spend(text.length * weight)
    return apply(text, args, run)
  })
}

/**
 * A filter of secrets: gets text; null stays null, and arrays and objects are rejected, because it would be unclear which
 * part of them is shown. `weight` is as for textFilter().
 */
export function secretFilter<const Parameters extends readonly Parameter<unknown>[]>(
  parameters: Parameters,
  apply: (text: string, args: Arguments<Parameters>, run: EvaluationRun) => Json,
  weight = 1,
): Filter {
  return filter(parameters, (input, args, run) => {
    if (input === null) return null
    if (typeof input === 'object') throw new FilterError('text_required')
    const text = typeof input === 'string' ? input : String(input)
    run.spend(text.length * weight)
    return apply(text, args, run)
  })
}

/** Returns the set of characters of an argument, and spends for it. */
export function setOf(characters: string, run: EvaluationRun): ReadonlySet<string> {
  run.spend(characters.length * EACH)
  return new Set(characters)
}

/** Makes a parameter optional. */
export function optional<T>(parameter: Parameter<T>, otherwise: T): Parameter<T> {
  return {
    optional: true,
    read: (value, run) => (value === null ? otherwise : parameter.read(value, run)),
  }
}

export const any: Parameter<Json> = { optional: false, read: (value) => value }

/** The text form of any value. */
export const text: Parameter<string> = {
  optional: false,
  read(value, run) {
    if (typeof value === 'string') return value
    return textOf(value, run)
  },
}

/** A whole number, also as text. */
export const integer: Parameter<number> = {
  optional: false,
  read(value) {
    const number = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value
    if (typeof number !== 'number' || !Number.isSafeInteger(number)) {
      throw new FilterError('argument_invalid')
    }
    return number
  },
}

/** A count, from none to the maximum length of a result. */
export const count: Parameter<number> = {
  optional: false,
  read(value, run) {
    const number = integer.read(value, run)
    if (number < 0 || number > EXPRESSION_RESULT_CHARS_MAX) {
      throw new FilterError('argument_invalid')
    }
    return number
  },
}

/** Exactly one character. */
export const character: Parameter<string> = {
  optional: false,
  read(value) {
    const written = typeof value === 'number' ? String(value) : value
    if (typeof written !== 'string' || written.length > 2 || lengthOf(written) !== 1) {
      throw new FilterError('argument_invalid')
    }
    return written
  },
}

/** A boolean, also as text: `'true'`. */
export const flag: Parameter<boolean> = {
  optional: false,
  read(value) {
    if (value === true || value === 'true') return true
    if (value === false || value === 'false') return false
    throw new FilterError('argument_invalid')
  },
}
