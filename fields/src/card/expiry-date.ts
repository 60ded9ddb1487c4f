/** Expiry dates as people type, paste and autofill them: `1230`, `12/30`, `12 / 2030`, `1/30`, `2030-12`. */
import { digitsOf } from './card-number.ts'

export type ExpiryError = 'missing' | 'incomplete' | 'invalid' | 'past'

export interface ExpiryState {
  readonly month: number | null
  /** Four digits. */
  readonly year: number | null
  readonly complete: boolean
  readonly error: ExpiryError | null
}

/** Cards are not issued for longer: a year beyond is a mistake. */
const YEARS_AHEAD_MAX = 30

/** Examines what was typed. `today` decides what is past; a card is good until the last day of its month. */
export function readExpiry(text: string, today: Date): ExpiryState {
  const parts = partsOf(text)
  const error = expiryError(parts, today)
  if (error !== null && error !== 'past') return { month: null, year: null, complete: false, error }
  const { month, year } = valuesOf(parts)
  return { month, year, complete: error === null, error }
}

interface Parts {
  readonly month: string
  readonly year: string
}

function expiryError({ month, year }: Parts, today: Date): ExpiryError | null {
  if (month === '' && year === '') return 'missing'
  const value = Number(month)
  if (month.length === 2 && (value < 1 || value > 12)) return 'invalid'
  if (month === '' || value === 0 || (year.length !== 2 && year.length !== 4)) return 'incomplete'
  const full = valuesOf({ month, year })
  const current = today.getFullYear()
  if (full.year > current + YEARS_AHEAD_MAX) return 'invalid'
  const past = full.year < current || (full.year === current && full.month < today.getMonth() + 1)
  return past ? 'past' : null
}

function valuesOf({ month, year }: Parts): { month: number; year: number } {
  return { month: Number(month), year: year.length === 2 ? 2000 + Number(year) : Number(year) }
}

/** Splits at a separator if there is one, and otherwise after the month. */
function partsOf(text: string): Parts {
  const plain = text.normalize('NFKC').trim()
  const [first = '', second] = plain.split(/[^\p{Nd}]+/u).map((it) => digitsOf(it, 4))
  // As `<input type=month>` and some password managers write it.
  if (first.length === 4 && second !== undefined && second !== '') {
    return { month: second.slice(0, 2), year: first }
  }
  if (second !== undefined && first !== '') return { month: first.slice(0, 2), year: second }
  const digits = digitsOf(plain, 6)
  // A month that begins with 2 to 9 has one digit.
  const monthLength = /^[2-9]/.test(digits) ? 1 : 2
  return { month: digits.slice(0, monthLength), year: digits.slice(monthLength) }
}

/**
 * Returns the text as the field shows it while it is typed: `1` stays, `5` becomes `05 / `, `1230` becomes `12 / 30`. A
 * character that was just deleted stays deleted: `deleting` leaves the separator away.
 */
export function formatExpiry(text: string, deleting: boolean): string {
  const parts = partsOf(text)
  const separated = /\p{Nd}\s*[^\p{Nd}\s]/u.test(text)
  let { month } = parts
  const { year } = parts
  if (month === '' && year === '') return ''
  if (month.length === 1 && (separated || year !== '' || /[2-9]/.test(month))) month = `0${month}`
  if (year !== '') return `${month} / ${year}`
  return month.length === 2 && !deleting ? `${month} / ` : month
}
