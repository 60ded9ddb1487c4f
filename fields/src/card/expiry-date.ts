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

/** A year before is a mistake, not a card that has expired. */
const YEAR_MIN = 2000

/** Of a month that is too long to be one: enough to show the mistake. */
const GROUP_DIGITS_MAX = 8

/** Examines what was typed. `today` decides what is past; a card is good until the last day of its month. */
export function readExpiry(text: string, today: Date): ExpiryState {
  const parts = partsOf(text)
  const error = expiryError(parts, today)
  if (error !== null && error !== 'past') return { month: null, year: null, complete: false, error }
  const { month, year } = valuesOf(parts)
  return { month, year, complete: error === null, error }
}

/**
 * Returns the text as the field shows it while it is typed: `1` stays, `5` becomes `05 / `, `13` becomes `01 / 3`, `1230`
 * becomes `12 / 30`. A character that was just deleted stays deleted: `deleting` leaves the separator away.
 */
export function formatExpiry(text: string, deleting: boolean): string {
  const parts = partsOf(text)
  const separated = /\p{Nd}\s*[^\p{Nd}\s]/u.test(plainOf(text))
  let { month } = parts
  const { year } = parts
  if (month === '') return ''
  if (month.length === 1 && (separated || year !== '' || /[2-9]/.test(month))) month = `0${month}`
  if (year !== '') return `${month} / ${year}`
  return month.length === 2 && !deleting ? `${month} / ` : month
}

interface Parts {
  readonly month: string
  readonly year: string
}

function expiryError({ month, year }: Parts, today: Date): ExpiryError | null {
  if (month === '' && year === '') return 'missing'
  const value = Number(month)
  const monthEnded = month.length >= 2 || year !== ''
  if (monthEnded && (month.length > 2 || value < 1 || value > 12)) return 'invalid'
  if (value === 0 || (year.length !== 2 && year.length !== 4)) return 'incomplete'
  const full = valuesOf({ month, year })
  const current = today.getFullYear()
  if (full.year < YEAR_MIN || full.year > current + YEARS_AHEAD_MAX) return 'invalid'
  const past = full.year < current || (full.year === current && full.month < today.getMonth() + 1)
  return past ? 'past' : null
}

function valuesOf({ month, year }: Parts): { month: number; year: number } {
  return { month: Number(month), year: year.length === 2 ? 2000 + Number(year) : Number(year) }
}

/** Splits at a separator if there is one, and otherwise after the month. */
function partsOf(text: string): Parts {
  const groups = plainOf(text).match(/\p{Nd}+/gu) ?? []
  const [first = '', second, third = ''] = groups.map((it) => digitsOf(it, GROUP_DIGITS_MAX))
  if (second !== undefined) {
    // As `<input type=month>` and some password managers write it.
    if (/^20\d\d$/.test(first) && second.length <= 2) return { month: second, year: first }
    // A date with a day, which countries put before or after the month: shown as the mistake it is, never guessed.
    if (third.length === 4) {
      const both = first.padStart(2, '0') + second
      return { month: both.slice(0, GROUP_DIGITS_MAX), year: third }
    }
    return { month: first, year: second.slice(0, 4) }
  }
  if (/^20\d\d(?:0[1-9]|1[0-2])$/.test(first)) {
    return { month: first.slice(4), year: first.slice(0, 4) }
  }
  // A month of one digit: 2 to 9 begin no other month, and neither does a 1 before 3 to 9.
  const monthLength = /^(?:[2-9]|1[3-9])/.test(first) ? 1 : 2
  return { month: first.slice(0, monthLength), year: first.slice(monthLength, monthLength + 4) }
}

/** Returns the text in plain characters, without the invisible marks that copied text of right-to-left pages has. */
function plainOf(text: string): string {
  return text.normalize('NFKC').replaceAll(/\p{Cf}/gu, '')
}
