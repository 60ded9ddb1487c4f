/** The math filters of Liquid, over numbers and numeric texts; null counts as 0. They compute in decimals. */
import type { Json } from '../../base/json.ts'
import { DecimalNumber } from '../decimal-number.ts'
import { FilterError } from '../expression-error.ts'
import { integer, optional, type Filter, type Parameter } from './filter.ts'

const operand: Parameter<DecimalNumber> = {
  optional: false,
  read: (value) => DecimalNumber.from(value),
  readLiteral: (number) => number,
}

export const numberFilters: Readonly<Record<string, Filter>> = {
  abs: unary((it) => it.abs()),
  ceil: unary((it) => it.ceil()),
  floor: unary((it) => it.floor()),
  round: {
    parameters: [optional(integer, 0)],
    takesDecimals: true,
    apply: (input: Json | DecimalNumber, [places], run) => {
      const it = numberFrom(input)
      run.spend(it.cost)
      return round(it, places as number)
    },
  },
  plus: binary((it, other) => it.plus(other)),
  minus: binary((it, other) => it.minus(other)),
  times: binary((it, other) => it.times(other)),
  divided_by: binary((it, other) => it.dividedBy(other)),
  modulo: binary((it, other) => it.modulo(other)),
  at_least: binary((it, bound) => (it.isBelow(bound) ? bound : it)),
  at_most: binary((it, bound) => (bound.isBelow(it) ? bound : it)),
}

function unary(apply: (it: DecimalNumber) => DecimalNumber): Filter {
  return {
    parameters: [],
    takesDecimals: true,
    apply: (input: Json | DecimalNumber, _args, run) => {
      const it = numberFrom(input)
      run.spend(it.cost)
      return apply(it)
    },
  }
}

function binary(apply: (it: DecimalNumber, other: DecimalNumber) => DecimalNumber): Filter {
  return {
    parameters: [operand],
    takesDecimals: true,
    apply: (input: Json | DecimalNumber, [argument], run) => {
      const [it, other] = [numberFrom(input), argument as DecimalNumber]
      run.spend(it.costWith(other))
      return apply(it, other)
    },
  }
}

function numberFrom(input: Json | DecimalNumber): DecimalNumber {
  return input instanceof DecimalNumber ? input : DecimalNumber.from(input)
}

function round(it: DecimalNumber, places: number): DecimalNumber {
  if (Math.abs(places) > 20) throw new FilterError('argument_invalid')
  return it.round(places)
}
