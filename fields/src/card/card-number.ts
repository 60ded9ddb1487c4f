/** Card numbers as people type and paste them. */
import { BRAND_DIGITS, brandOf, brandsOf, UNKNOWN_LENGTHS, type BrandName } from './brands.ts'

export const NUMBER_DIGITS_MAX = 19

/** Nearly all numbers have so many digits: a longer one that fits no brand has a digit too many, not too few. */
const USUAL_LENGTH = 16

/** Digits that the page may know of a complete number: PCI DSS, requirement 3.5.1, allows the first eight and the last four. */
const BIN_LENGTH_MAX = 8
const LAST_DIGITS = 4

export type NumberError = 'missing' | 'incomplete' | 'invalid' | 'brand-not-accepted'

export interface NumberState {
  readonly digits: string
  /** None while that is open, two for co-branded cards. */
  readonly brands: readonly BrandName[]
  /** Those of them that the shop takes: the buyer may choose if there are two. */
  readonly choices: readonly BrandName[]
  /** Whether it may be sent: long enough for its brand, with a correct check digit, of an accepted brand. */
  readonly complete: boolean
  /** Whether no further digit fits. */
  readonly full: boolean
  /** The first flaw, for when the field is left; null if there is none. */
  readonly error: NumberError | null
}

/** Returns the digits of `text`, at most as many as a number may have. Digits of other scripts count: a phone may type them. */
export function digitsOf(text: string, most: number): string {
  let digits = ''
  for (const character of text.normalize('NFKC')) {
    if (digits.length === most) break
    const value = digitValue(character)
    if (value !== null) digits += String(value)
  }
  return digits
}

/** Examines what was typed. `accepted` lists the brands that the shop takes; null for all. */
export function readNumber(
  text: string,
  accepted: readonly BrandName[] | null = null,
): NumberState {
  const digits = digitsOf(text, NUMBER_DIGITS_MAX)
  const brands = brandsOf(digits)
  const lengths = lengthsOf(brands)
  const error = numberError(digits, brands, lengths, accepted)
  return {
    digits,
    brands,
    choices: brands.filter((it) => accepted === null || accepted.includes(it)),
    complete: error === null,
    full: digits.length >= lengths.at(-1)!,
    error,
  }
}

function numberError(
  digits: string,
  brands: readonly BrandName[],
  lengths: readonly number[],
  accepted: readonly BrandName[] | null,
): NumberError | null {
  if (digits === '') return 'missing'
  const refused = accepted !== null && !brands.some((it) => accepted.includes(it))
  // Fewer digits may still become an accepted brand: Elo has ranges within Visa's 4.
  if (refused && brands.length > 0 && digits.length >= BRAND_DIGITS) return 'brand-not-accepted'
  if (!lengths.includes(digits.length)) {
    const growing = lengths.some((it) => it > digits.length && it <= USUAL_LENGTH)
    return growing ? 'incomplete' : 'invalid'
  }
  if (!passesLuhn(digits)) return 'invalid'
  return refused ? 'brand-not-accepted' : null
}

/** Returns the lengths that any of the brands has, ascending. */
function lengthsOf(brands: readonly BrandName[]): readonly number[] {
  if (brands.length === 0) return UNKNOWN_LENGTHS
  return [...new Set(brands.flatMap((it) => brandOf(it).lengths))].toSorted((a, b) => a - b)
}

/** Returns the digits in groups as they stand on the card: 4-6-5 for American Express, 4-6-4 for 14 digits, else by four. */
export function groupDigits(digits: string): string {
  const [brand] = brandsOf(digits)
  const sizes =
    brand === 'american-express'
      ? [4, 6, 5]
      : brand === 'diners-club' && digits.length <= 14
        ? [4, 6, 4]
        : [4, 4, 4, 4, 3]
  const groups: string[] = []
  let at = 0
  for (const size of sizes) {
    if (at >= digits.length) break
    groups.push(digits.slice(at, at + size))
    at += size
  }
  if (at < digits.length) groups.push(digits.slice(at))
  return groups.join(' ')
}

/** Returns the first digits of a complete number that may be shown: eight, or six of a number below 16 digits. */
export function binOf(digits: string): string {
  return digits.slice(0, digits.length < 16 ? 6 : BIN_LENGTH_MAX)
}

export function lastFourOf(digits: string): string {
  return digits.slice(-LAST_DIGITS)
}

/** Verifies the check digit: ISO/IEC 7812-1, annex B. */
export function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits[digits.length - 1 - at])
    const value = at % 2 === 1 ? digit * 2 : digit
    sum += value > 9 ? value - 9 : value
  }
  return sum % 10 === 0
}

/** Returns the value of a decimal digit of any script, such as the Arabic-Indic ones; null for any other character. */
function digitValue(character: string): number | null {
  if (!/^\p{Nd}$/u.test(character)) return null
  const code = character.codePointAt(0)!
  // Digits stand in ascending blocks of ten; blocks may adjoin, so their common start is looked for.
  let zero = code
  while (/^\p{Nd}$/u.test(String.fromCodePoint(zero - 1))) zero--
  return (code - zero) % 10
}
