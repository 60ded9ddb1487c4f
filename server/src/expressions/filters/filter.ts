import type { Json } from '../../base/json.ts'
import { EXPRESSION_RESULT_CHARS_MAX } from '../../base/limits.ts'
import { FilterError } from '../expression-error.ts'
import type { EvaluationRun } from '../evaluation-run.ts'
import { lengthOf, textOf } from '../text.ts'

/**
 * What stands behind the name of a filter: what it is given, and what it makes of a value.
 *
 * A filter is pure but for `run`, from which aliases draw chance and everybody takes work. Built by
 * filter() and its sisters, which keep parameters and function in step.
 */
export interface Filter {
  readonly parameters: readonly Parameter<unknown>[]
  /** `args` has one item for each parameter, as that parameter read it. Throws FilterError. */
  apply(input: FilterValue, args: readonly unknown[], run: EvaluationRun): FilterValue
  /** Whether the same value may give another result the next time. */
  readonly random?: true
  /** Whether the result is bytes, which only an encoder takes; checked when a chain is parsed. */
  readonly bytes?: 'made' | 'taken'
}

/** What goes from filter to filter; bytes only from one that makes them to one that takes them. */
export type FilterValue = Json | Uint8Array

/** One thing a filter is given. */
export interface Parameter<T> {
  readonly optional: boolean
  /** Throws `argument_invalid`. `run` is null while a literal is read, when the template is parsed. */
  readonly read: (value: Json, run: EvaluationRun | null) => T
  /** Reads a literal that was written with a point, `100.0`, where that means something else than without. */
  readonly readDecimal?: (value: number) => T
}

/** What parameters read, in their order. */
export type Arguments<Parameters extends readonly Parameter<unknown>[]> = {
  [Index in keyof Parameters]: Parameters[Index] extends Parameter<infer T> ? T : never
}

/** The weight of looking at each character by itself. */
export const EACH = 16

/** A filter of any value. */
export function filter<const Parameters extends readonly Parameter<unknown>[]>(
  parameters: Parameters,
  apply: (input: Json, args: Arguments<Parameters>, run: EvaluationRun) => FilterValue,
): Filter {
  return { parameters, apply }
}

/**
 * A filter of text: it gets the text form of whatever comes, as Liquid has it; null is empty.
 *
 * `weight` is what a character costs, in characters that are only copied, which takes a few nanoseconds
 * each.
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
 * A filter of secrets: it gets text; null stays null, and arrays and objects are refused, since nobody
 * can tell what would be shown of them. `weight` is as for textFilter().
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

/** Returns the characters of an argument, for looking them up, and spends for them. */
export function setOf(characters: string, run: EvaluationRun): ReadonlySet<string> {
  run.spend(characters.length * EACH)
  return new Set(characters)
}

/** Makes a parameter one that may be left out. */
export function optional<T>(parameter: Parameter<T>, otherwise: T): Parameter<T> {
  return {
    optional: true,
    read: (value, run) => (value === null ? otherwise : parameter.read(value, run)),
  }
}

export const any: Parameter<Json> = { optional: false, read: (value) => value }

/** The text form of whatever is given. */
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

/** How many: from none to as many as a result may have. */
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

/** A truth value, also as text: `'true'`. */
export const flag: Parameter<boolean> = {
  optional: false,
  read(value) {
    if (value === true || value === 'true') return true
    if (value === false || value === 'false') return false
    throw new FilterError('argument_invalid')
  },
}
