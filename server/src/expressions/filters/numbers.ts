/** The math filters of Liquid, over numbers and numeric texts; null counts as 0. */
import type { Json } from '../../base/json.ts'
import { FilterError } from '../expression-error.ts'
import { filter, integer, optional, type Arguments, type Filter, type Parameter } from './filter.ts'

const number: Parameter<number> = { optional: false, read: (value) => numberOf(value) }

/** A divisor. A decimal point marks it as not whole, in a text as well. */
const divisor: Parameter<{ readonly by: number; readonly whole: boolean }> = {
  optional: false,
  read: (value) => {
    const by = numberOf(value)
    return {
      by,
      whole: Number.isInteger(by) && !(typeof value === 'string' && value.includes('.')),
    }
  },
  readDecimal: (by) => ({ by, whole: false }),
}

export const numberFilters: Readonly<Record<string, Filter>> = {
  abs: numberFilter([], (it) => Math.abs(it)),
  ceil: numberFilter([], (it) => Math.ceil(it)),
  floor: numberFilter([], (it) => Math.floor(it)),
  round: numberFilter([optional(integer, 0)], (it, [places]) => round(it, places)),
  plus: numberFilter([number], (it, [other]) => it + other),
  minus: numberFilter([number], (it, [other]) => it - other),
  times: numberFilter([number], (it, [other]) => it * other),
  // A whole number divided by a whole number is whole, rounded down, as in Liquid; 100.0 is not whole there.
  divided_by: numberFilter([divisor], (it, [{ by, whole }]) => {
    return whole && Number.isInteger(it) ? Math.floor(it / by) : it / by
  }),
  modulo: numberFilter([number], (it, [divisor]) => ((it % divisor) + divisor) % divisor),
  at_least: numberFilter([number], (it, [bound]) => Math.max(it, bound)),
  at_most: numberFilter([number], (it, [bound]) => Math.min(it, bound)),
}

/**
 * Reads a number, or a text in decimal notation.
 *
 * Throws `number_required` for anything else, and `number_out_of_range` if digits would be lost: a long card number is not a
 * number.
 */
export function numberOf(value: Json): number {
  if (typeof value === 'number') return value
  if (value === null) return 0
  const written = typeof value === 'string' && value.length <= 400 ? value.trim() : ''
  if (!/^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/.test(written)) {
    throw new FilterError('number_required')
  }
  return exact(Number(written))
}

function numberFilter<const Parameters extends readonly Parameter<unknown>[]>(
  parameters: Parameters,
  apply: (it: number, args: Arguments<Parameters>) => number,
): Filter {
  return filter(parameters, (input, args) => exact(apply(numberOf(input), args)))
}

/** Throws `number_out_of_range` if the number is not finite, or too large to be exact. */
export function exact(number: number): number {
  const whole = Number.isInteger(number)
  if (!Number.isFinite(number) || (whole && !Number.isSafeInteger(number))) {
    throw new FilterError('number_out_of_range')
  }
  return number === 0 ? 0 : number
}

/** Rounds halves away from zero, by decimal notation, because 1.005 * 100 is less than 100.5. */
function round(it: number, places: number): number {
  if (Math.abs(places) > 20) throw new FilterError('argument_invalid')
  const rounded = shift(Math.round(shift(Math.abs(it), places)), -places)
  return it < 0 ? -rounded : rounded
}

function shift(it: number, places: number): number {
  const [digits, power = '0'] = String(it).split('e')
  return Number(`${digits}e${Number(power) + places}`)
}
