/**
 * Parses an expiry in the three forms callers write it.
 *
 * ISO 8601 (`2030-08-26T19:23:57-07:00`), month first on a twelve-hour clock (`8/26/2030 7:23:57 PM -07:00`), and a short date
 * (`9/27/2030`, midnight). Without an offset it is UTC.
 * Source: interface.md, Tokens, Expiry.
 */

import { renderInstant } from './instant.ts'

export interface Expiry {
  /** Epoch milliseconds. */
  readonly at: number
  /** ISO 8601 with the caller's own offset, as shown in answers. */
  readonly text: string
}

/**
 * Returns null if `text` has none of the three forms, names no real instant, or one that typed clients cannot read: with an
 * offset beyond 14 hours, or outside the years 1 to 9999. Hour 24 is the beginning of the next day.
 */
export function parseExpiry(text: string): Expiry | null {
  const iso = ISO.exec(text)
  if (iso !== null) {
    const { date, time = '00:00:00', fraction = '', offset } = iso.groups as Groups
    const clock = time.length === 5 ? `${time}:00` : time
    return expiryOf(`${date!}T${clock}${fraction.slice(0, 4)}`, offset)
  }
  const us = US.exec(text)
  if (us === null) return null
  const { month, day, year, hour, minute = '00', second = '00', half, offset } = us.groups as Groups
  const date = `${year!}-${month!.padStart(2, '0')}-${day!.padStart(2, '0')}`
  if (hour === undefined) return expiryOf(`${date}T00:00:00`, offset)
  if (Number(hour) < 1 || Number(hour) > 12) return null
  const hours = (Number(hour) % 12) + (half!.toUpperCase() === 'PM' ? 12 : 0)
  return expiryOf(`${date}T${String(hours).padStart(2, '0')}:${minute}:${second}`, offset)
}

/**
 * Returns `text` in a form that typed clients can read: an earlier version stored hour 24, offsets beyond 14 hours and instants
 * beyond the year 9999 as they were sent.
 */
export function readableExpiry(text: string): string {
  if (READABLE.test(text)) return text
  return parseExpiry(text)?.text ?? renderExpiry(Date.parse(text))
}

/** Renders the instant of an expiry; an earlier version stored ones beyond the year 9999. */
export function renderExpiry(at: number): string {
  return renderInstant(Math.min(at, LAST_READABLE))
}

/** What nearly all are; the others are read in full. */
const READABLE =
  /^(?!9999-12-31)[1-9]\d{3}-\d\d-\d\dT(?:[01]\d|2[0-3])[\d:.]+[+-](?:0\d|1[0-3]):\d\d$/

const LAST_READABLE = Date.UTC(9999, 11, 31, 23, 59, 59)

/** The form to recommend in errors, which every endpoint accepts. */
export const EXPIRY_FORM = 'an ISO 8601 date and time, such as 2030-08-26T19:23:57-07:00'

type Groups = Readonly<Record<string, string | undefined>>

const ISO =
  /^(?<date>\d{4}-\d\d-\d\d)(?:[T ](?<time>\d\d:\d\d(?::\d\d)?)(?<fraction>\.\d{1,9})?\s?(?<offset>Z|[+-]\d\d:?\d\d)?)?$/i
const US =
  /^(?<month>\d\d?)\/(?<day>\d\d?)\/(?<year>\d{4})(?: (?<hour>\d\d?):(?<minute>\d\d)(?::(?<second>\d\d))? (?<half>[AP]M)(?: (?<offset>Z|[+-]\d\d:?\d\d))?)?$/i

function expiryOf(local: string, offset: string | undefined): Expiry | null {
  const shown = renderOffset(offset)
  const at = Date.parse(`${local}${shown}`)
  // The parser rolls 31 February over into March: an instant that does not read back is no date.
  if (Number.isNaN(at) || !isRealDate(local.slice(0, 10)) || isBeyond(shown)) return null
  const normal = local.slice(11, 13) === '24' ? nextDay(local) : local
  return isReadable(normal) && isReadable(new Date(at).toISOString())
    ? { at, text: `${normal}${shown}` }
    : null
}

/** No time zone is further from UTC. */
function isBeyond(offset: string): boolean {
  const [, hours, minutes] = /^[+-](\d\d):(\d\d)$/.exec(offset)!
  return Number(hours) * 60 + Number(minutes) > 14 * 60
}

/** Returns midnight of the day after `local`, which is at hour 24. */
function nextDay(local: string): string {
  const midnight = Date.parse(`${local.slice(0, 10)}T00:00:00Z`)
  return new Date(midnight + DAY_MS).toISOString().replace(/T.*/, `T00${local.slice(13)}`)
}

const DAY_MS = 24 * 60 * 60 * 1000

/** Whether the year has four digits and is not 0. */
function isReadable(instant: string): boolean {
  return /^\d{4}-/.test(instant) && !instant.startsWith('0000')
}

function renderOffset(offset: string | undefined): string {
  if (offset === undefined || offset.toUpperCase() === 'Z') return '+00:00'
  return offset.includes(':') ? offset : `${offset.slice(0, 3)}:${offset.slice(3)}`
}

function isRealDate(date: string): boolean {
  const at = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date)
}
