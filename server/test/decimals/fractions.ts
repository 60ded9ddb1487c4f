/**
 * Decimal arithmetic in exact fractions of BigInt, with nothing in common with the library that the filters use.
 *
 * Every function returns null for what the filters refuse as `number_out_of_range`.
 */

/** `digits` times ten to the power of `exponent`, and whether Liquid takes it for an integer. */
export interface Exact {
  readonly digits: bigint
  readonly exponent: number
  readonly isInteger: boolean
}

const PRECISION = 34
const EXPONENT_MAX = 400

/** Reads decimal notation, as in `-12.50e3`. */
export function parseExact(written: string): Exact | null {
  const [, sign, whole, fraction = '', power = '0'] =
    /^([+-]?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(written)!
  const digits = BigInt(`${sign === '-' ? '-' : ''}${whole}${fraction}`)
  const exponent = Number(power) - fraction.length
  const isInteger = !written.includes('.') && isWhole(digits, exponent)
  return inRange({ digits, exponent, isInteger })
}

export const OPERATIONS = {
  plus: (a: Exact, b: Exact) => sumOf([a, b]),
  minus: (a: Exact, b: Exact) => sumOf([a, { ...b, digits: -b.digits }]),
  times: (a: Exact, b: Exact) =>
    rounded(a.digits * b.digits * scale(a.exponent + b.exponent), unscale(a, b), both(a, b)),
  divided_by: (a: Exact, b: Exact) => {
    const [dividend, divisor] = aligned(a, b)
    if (divisor === 0n) return null
    if (both(a, b)) return rounded(floorOf(dividend, divisor), 1n, true)
    return divisor < 0n ? rounded(-dividend, -divisor, false) : rounded(dividend, divisor, false)
  },
  modulo: (a: Exact, b: Exact) => {
    const [dividend, divisor, exponent] = aligned(a, b)
    if (divisor === 0n) return null
    const rest = dividend - floorOf(dividend, divisor) * divisor
    return rounded(rest * scale(exponent), scale(-exponent), both(a, b))
  },
  at_least: (a: Exact, b: Exact) => (isBelow(a, b) ? b : a),
  at_most: (a: Exact, b: Exact) => (isBelow(b, a) ? b : a),
} as const

export const ROUNDINGS = {
  abs: (a: Exact) =>
    rounded(magnitude(a.digits) * scale(a.exponent), scale(-a.exponent), a.isInteger),
  ceil: (a: Exact) =>
    rounded(-floorOf(-a.digits * scale(a.exponent), scale(-a.exponent)), 1n, true),
  floor: (a: Exact) => rounded(floorOf(a.digits * scale(a.exponent), scale(-a.exponent)), 1n, true),
} as const

/** Rounds halves away from zero. */
export function roundTo(a: Exact, places: number): Exact | null {
  const shifted = a.exponent + places
  const twice = 2n * magnitude(a.digits) * scale(shifted)
  const nearest = floorOf(twice + scale(-shifted), 2n * scale(-shifted))
  const signed = a.digits < 0n ? -nearest : nearest
  return rounded(signed * scale(-places), scale(places), a.isInteger || places === 0)
}

/** Adds all, and rounds once. */
export function sumOf(all: readonly Exact[]): Exact | null {
  const exponent = Math.min(0, ...all.map((it) => it.exponent))
  const total = all.reduce((sum, it) => sum + it.digits * scale(it.exponent - exponent), 0n)
  return rounded(
    total,
    scale(-exponent),
    all.every((it) => it.isInteger),
  )
}

/** Returns the nearest double; null if it is too large to be exact. */
export function doubleOf({ digits, exponent }: Exact): number | null {
  const double = Number(`${digits}e${exponent}`)
  if (!Number.isFinite(double)) return null
  return Number.isInteger(double) && !Number.isSafeInteger(double) ? null : double + 0
}

/** Rounds a fraction to 34 significant digits, halves to even; the denominator is positive. */
function rounded(numerator: bigint, denominator: bigint, isInteger: boolean): Exact | null {
  const size = magnitude(numerator)
  let exponent = lengthOf(size) - lengthOf(denominator) - PRECISION
  let digits = nearest(size, denominator, exponent)
  // The estimate is one too low, or rounding made a digit more.
  while (lengthOf(digits) > PRECISION) digits = nearest(size, denominator, ++exponent)
  return inRange({ digits: numerator < 0n ? -digits : digits, exponent, isInteger })
}

function nearest(size: bigint, denominator: bigint, exponent: number): bigint {
  const [dividend, divisor] = [size * scale(-exponent), denominator * scale(exponent)]
  const quotient = dividend / divisor
  const twiceRest = 2n * (dividend - quotient * divisor)
  const up = twiceRest > divisor || (twiceRest === divisor && quotient % 2n === 1n)
  return up ? quotient + 1n : quotient
}

/** Too large is refused, too small is 0. */
function inRange(it: Exact): Exact | null {
  if (it.digits === 0n) return { ...it, exponent: 0 }
  const leading = lengthOf(magnitude(it.digits)) - 1 + it.exponent
  if (leading > EXPONENT_MAX) return null
  return leading < -EXPONENT_MAX ? { ...it, digits: 0n, exponent: 0 } : it
}

function isBelow(a: Exact, b: Exact): boolean {
  const [left, right] = aligned(a, b)
  return left < right
}

/** Returns the digits of both at the same exponent. */
function aligned(a: Exact, b: Exact): [bigint, bigint, exponent: number] {
  const exponent = Math.min(a.exponent, b.exponent)
  return [
    a.digits * scale(a.exponent - exponent),
    b.digits * scale(b.exponent - exponent),
    exponent,
  ]
}

function isWhole(digits: bigint, exponent: number): boolean {
  return digits % scale(-exponent) === 0n
}

function both(a: Exact, b: Exact): boolean {
  return a.isInteger && b.isInteger
}

function unscale(a: Exact, b: Exact): bigint {
  return scale(-a.exponent - b.exponent)
}

/** Ten to a power; 1 for a negative one. */
function scale(power: number): bigint {
  return 10n ** BigInt(Math.max(power, 0))
}

function floorOf(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor
  const exact = quotient * divisor === dividend
  return exact || dividend < 0n === divisor < 0n ? quotient : quotient - 1n
}

function magnitude(it: bigint): bigint {
  return it < 0n ? -it : it
}

function lengthOf(size: bigint): number {
  return String(size).length
}
