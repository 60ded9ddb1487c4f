import { Decimal } from 'decimal.js'
import type { Json } from '../base/json.ts'
import { FilterError } from './expression-error.ts'

/** A longer text is not a number. Bounds the cost of one computation. */
const NUMBER_CHARS_MAX = 400

/** Powers of ten. No double leaves them; a number beyond is refused, one that is closer to 0 becomes 0. */
const EXPONENT_MAX = 400

/** Every computation is correctly rounded to as many digits as a decimal128 has. */
const Rounded = Decimal.clone({
  defaults: true,
  precision: 34,
  rounding: Decimal.ROUND_HALF_EVEN,
  // The sign of the divisor, as in Liquid.
  modulo: Decimal.ROUND_FLOOR,
  minE: -EXPONENT_MAX,
  maxE: EXPONENT_MAX,
  toExpNeg: -7,
  toExpPos: 21,
})

/** Has room for every digit of a sum or of a quotient of integers, also while a sum is larger or smaller than a number may be. */
const Exact = Rounded.clone({
  precision: 2 * EXPONENT_MAX + NUMBER_CHARS_MAX + 20,
  minE: -EXPONENT_MAX - NUMBER_CHARS_MAX,
  maxE: EXPONENT_MAX + 20,
})

/**
 * A number in a chain of filters: 0.1 is a tenth here, and not the double nearest to it.
 *
 * It stays a decimal from one filter of numbers to the next, and becomes a double again with toDouble().
 */
export class DecimalNumber {
  readonly #value: Decimal
  /** As in Liquid, 7.0 is not an integer, and nothing that was computed from it is. */
  readonly isInteger: boolean

  /** Throws `number_out_of_range`, also for a division by 0. */
  private constructor(value: Decimal, isInteger: boolean) {
    if (!value.isFinite()) throw new FilterError('number_out_of_range')
    this.#value = value
    this.isInteger = isInteger
  }

  /** Reads a number, or a text in decimal notation; null is 0. Throws `number_required` or `number_out_of_range`. */
  static from(value: Json): DecimalNumber {
    if (typeof value === 'number')
      return new DecimalNumber(new Rounded(value), Number.isInteger(value))
    const written = numeral(value)
    const decimal = new Rounded(written)
    return new DecimalNumber(decimal, !written.includes('.') && decimal.isInteger())
  }

  /** Returns null for a literal with more digits than a number may have. */
  static fromLiteral(written: string): DecimalNumber | null {
    return written.length > NUMBER_CHARS_MAX ? null : DecimalNumber.from(written)
  }

  /** The cost of reading it and computing with it alone, in characters of work. */
  get cost(): number {
    return COMPUTATION + this.#value.d.length * WORD
  }

  /** The cost of a computation with `other`: that of a division, whose quotient may have more digits than either. */
  costWith(other: DecimalNumber): number {
    const [a, b] = [this.#value, other.#value]
    const quotient = a.d.length + Math.ceil(Math.max(a.e - b.e, 0) / DIGITS_PER_WORD) + EXTRA_WORDS
    return COMPUTATION + quotient * (b.d.length + EXTRA_WORDS) * PRODUCT
  }

  plus(other: DecimalNumber): DecimalNumber {
    return new DecimalNumber(this.#value.plus(other.#value), this.#isIntegerWith(other))
  }

  minus(other: DecimalNumber): DecimalNumber {
    return new DecimalNumber(this.#value.minus(other.#value), this.#isIntegerWith(other))
  }

  times(other: DecimalNumber): DecimalNumber {
    return new DecimalNumber(this.#value.times(other.#value), this.#isIntegerWith(other))
  }

  /** An integer divided by an integer is an integer, rounded down. */
  dividedBy(other: DecimalNumber): DecimalNumber {
    if (!this.#isIntegerWith(other)) return new DecimalNumber(this.#value.div(other.#value), false)
    const [dividend, divisor] = [new Exact(this.#value), new Exact(other.#value)]
    return DecimalNumber.#rounded(dividend.minus(dividend.mod(divisor)).div(divisor), true)
  }

  modulo(other: DecimalNumber): DecimalNumber {
    return new DecimalNumber(this.#value.mod(other.#value), this.#isIntegerWith(other))
  }

  abs(): DecimalNumber {
    return DecimalNumber.#rounded(this.#value.abs(), this.isInteger)
  }

  ceil(): DecimalNumber {
    return DecimalNumber.#rounded(this.#value.ceil(), true)
  }

  floor(): DecimalNumber {
    return DecimalNumber.#rounded(this.#value.floor(), true)
  }

  /** Rounds halves away from zero. */
  round(places: number): DecimalNumber {
    const value =
      places < 0
        ? this.#value.toNearest(`1e${-places}`, Decimal.ROUND_HALF_UP)
        : this.#value.toDecimalPlaces(places, Decimal.ROUND_HALF_UP)
    return DecimalNumber.#rounded(value, this.isInteger || places === 0)
  }

  isBelow(other: DecimalNumber): boolean {
    return this.#value.lessThan(other.#value)
  }

  /** Adds without rounding in between, so that the order does not matter; calls `spend` before each number. */
  static sum(values: readonly Json[], spend: (chars: number) => void): DecimalNumber {
    // Small integers are exact as doubles, and most lists hold nothing else.
    let small = 0
    let total = new Exact(0)
    let isInteger = true
    for (const value of values) {
      if (Number.isSafeInteger(value) && Number.isSafeInteger(small + (value as number))) {
        small += value as number
        continue
      }
      spend(SUMMAND + total.d.length * PRODUCT)
      const number = DecimalNumber.from(value)
      total = total.plus(number.#value)
      isInteger &&= number.isInteger
    }
    return DecimalNumber.#rounded(total.plus(small), isInteger)
  }

  /** Returns the nearest double. Throws `number_out_of_range`, see exact(). */
  toDouble(): number {
    return exact(this.#value.toNumber())
  }

  static #rounded(value: Decimal, isInteger: boolean): DecimalNumber {
    return new DecimalNumber(new Rounded(value).toSignificantDigits(), isInteger)
  }

  #isIntegerWith(other: DecimalNumber): boolean {
    return this.isInteger && other.isInteger
  }
}

/** Costs in characters of work: of a computation, of a word in it (seven digits), and of a product of two words. */
const COMPUTATION = 256
const WORD = 32
const PRODUCT = 6
const DIGITS_PER_WORD = 7

/** A quotient has this many words more than the dividend, and each costs as if the divisor had so many more. */
const EXTRA_WORDS = 6

/** The cost of adding a number to a sum, without its words. */
const SUMMAND = 128

/**
 * Reads a number, or a text in decimal notation, as a double.
 *
 * Throws `number_required` for anything else, and `number_out_of_range` if digits would be lost: a long card number is not a
 * number.
 */
export function numberOf(value: Json): number {
  return typeof value === 'number' ? value : exact(Number(numeral(value)))
}

/** Returns the decimal notation of a text; null is 0. Throws `number_required`. */
function numeral(value: Json): string {
  if (value === null) return '0'
  const written = typeof value === 'string' && value.length <= NUMBER_CHARS_MAX ? value.trim() : ''
  if (!/^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/.test(written)) {
    throw new FilterError('number_required')
  }
  return written
}

/** Throws `number_out_of_range` if the number is not finite, or too large to be exact. */
function exact(number: number): number {
  const whole = Number.isInteger(number)
  if (!Number.isFinite(number) || (whole && !Number.isSafeInteger(number))) {
    throw new FilterError('number_out_of_range')
  }
  return number === 0 ? 0 : number
}
