/**
 * The date filter of Liquid, without a clock or a local time zone: `now` is not a date, and a date without an offset is in
 * UTC.
 */
import type { Json } from '../../base/json.ts'
import { FilterError } from '../expression-error.ts'
import { EACH, filter, text, type Filter } from './filter.ts'

/** An instant with the offset it was written with. */
interface Moment {
  /** The local calendar and clock, as if they were UTC. */
  readonly shown: Date
  /** Minutes the local time is ahead of UTC. */
  readonly offset: number
}

export const dateFilters: Readonly<Record<string, Filter>> = {
  date: filter([text], (it, [format], run) => {
    if (it === null || it === '' || format === '') return it
    const moment = momentOf(it)
    run.spend(format.length * EACH)
    let length = format.length
    run.write(length)
    return format.replaceAll(DIRECTIVE, (whole, flags: string, width: string, name: string) => {
      const part = PARTS[name]?.(moment)
      if (part === undefined) return whole
      const filled = fill(part, name, flags, Number(width))
      length += filled.length
      run.write(PART + filled.length, length)
      return filled
    })
  }),
}

/** The cost of one part of a date, in characters of work. */
const PART = 64

/** ISO 8601: a year and a month, optionally followed by day, time and offset. */
const ISO =
  /^(\d{4})-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?: ?(Z|UTC|[+-](?:[01]\d|2[0-3]):?[0-5]\d))?)?)?$/

/** Seconds since 1970, also as text; more digits would be milliseconds. */
const SECONDS = /^-?\d{1,11}(?:\.\d{1,9})?$/

/** Throws `date_required`: Liquid returns unreadable input unchanged, and a mask would reveal it. */
function momentOf(it: Json): Moment {
  const written = typeof it === 'number' ? String(it) : it
  if (typeof written !== 'string') throw new FilterError('date_required')
  if (SECONDS.test(written)) {
    const shown = new Date(Number(written) * 1000)
    // No year of four digits is before that.
    if (shown.getUTCFullYear() < 0) throw new FilterError('date_required')
    return { shown, offset: 0 }
  }
  const [
    ,
    year,
    month,
    day = '01',
    hours = '00',
    minutes = '00',
    seconds = '00',
    fraction = '',
    zone,
  ] = ISO.exec(written) ?? []
  const date = `${year}-${month}-${day}T${hours}:${minutes}:${seconds}`
  const shown = new Date(`${date}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // Date reads February 31 as March 3, and 24:00 as the next day.
  if (Number.isNaN(shown.getTime()) || !shown.toISOString().startsWith(date)) {
    throw new FilterError('date_required')
  }
  return { shown, offset: offsetOf(zone) }
}

function offsetOf(zone = 'Z'): number {
  if (!/\d/.test(zone)) return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))
  return zone.startsWith('-') ? -minutes : minutes
}

/** Padding and case flags, width, and directive. Source: strftime(3), and Ruby for the flags. */
const DIRECTIVE = /%([-_0^#]*)(\d{0,2})([a-zA-Z%])/g

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const MONTHS =
  'January February March April May June July August September October November December'.split(' ')

const DAY_MS = 86_400_000

/** By directive; numbers are padded to the usual width. */
const PARTS: Readonly<Record<string, (moment: Moment) => number | string>> = {
  Y: ({ shown }) => shown.getUTCFullYear(),
  C: ({ shown }) => Math.floor(shown.getUTCFullYear() / 100),
  y: ({ shown }) => shown.getUTCFullYear() % 100,
  m: ({ shown }) => shown.getUTCMonth() + 1,
  B: ({ shown }) => MONTHS[shown.getUTCMonth()]!,
  b: ({ shown }) => MONTHS[shown.getUTCMonth()]!.slice(0, 3),
  h: ({ shown }) => MONTHS[shown.getUTCMonth()]!.slice(0, 3),
  d: ({ shown }) => shown.getUTCDate(),
  e: ({ shown }) => shown.getUTCDate(),
  j: ({ shown }) => dayOfYear(shown) + 1,
  A: ({ shown }) => DAYS[shown.getUTCDay()]!,
  a: ({ shown }) => DAYS[shown.getUTCDay()]!.slice(0, 3),
  u: ({ shown }) => shown.getUTCDay() || 7,
  w: ({ shown }) => shown.getUTCDay(),
  U: ({ shown }) => Math.floor((dayOfYear(shown) + 7 - shown.getUTCDay()) / 7),
  W: ({ shown }) => Math.floor((dayOfYear(shown) + 7 - ((shown.getUTCDay() + 6) % 7)) / 7),
  H: ({ shown }) => shown.getUTCHours(),
  k: ({ shown }) => shown.getUTCHours(),
  I: ({ shown }) => shown.getUTCHours() % 12 || 12,
  l: ({ shown }) => shown.getUTCHours() % 12 || 12,
  M: ({ shown }) => shown.getUTCMinutes(),
  S: ({ shown }) => shown.getUTCSeconds(),
  L: ({ shown }) => shown.getUTCMilliseconds(),
  p: ({ shown }) => (shown.getUTCHours() < 12 ? 'AM' : 'PM'),
  P: ({ shown }) => (shown.getUTCHours() < 12 ? 'am' : 'pm'),
  s: ({ shown, offset }) => Math.floor(shown.getTime() / 1000) - offset * 60,
  z: ({ offset }) => zoneOf(offset, ''),
  Z: ({ offset }) => (offset === 0 ? 'UTC' : zoneOf(offset, ':')),
  F: ({ shown }) => shown.toISOString().slice(0, -14),
  D: dayAsInAmerica,
  x: dayAsInAmerica,
  T: timeOf,
  X: timeOf,
  R: (moment) => timeOf(moment).slice(0, 5),
  n: () => '\n',
  t: () => '\t',
  '%': () => '%',
}

const WIDTHS: Readonly<Record<string, number>> = { Y: 4, j: 3, L: 3, u: 1, w: 1, s: 1 }
const SPACED: ReadonlySet<string> = new Set(['e', 'k', 'l'])

function fill(part: number | string, name: string, flags: string, width: number): string {
  const written = cased(String(part), flags)
  if (flags.includes('-')) return written
  const isNumber = typeof part === 'number'
  const zeros = flags.includes('0') || (isNumber && !SPACED.has(name) && !flags.includes('_'))
  return written.padStart(width || (isNumber ? (WIDTHS[name] ?? 2) : 0), zeros ? '0' : ' ')
}

function cased(written: string, flags: string): string {
  if (flags.includes('^')) return written.toUpperCase()
  if (!flags.includes('#')) return written
  const upper = written.toUpperCase()
  return written === upper ? written.toLowerCase() : upper
}

function dayOfYear(shown: Date): number {
  // Not Date.UTC(), which maps the years 0 to 99 to 1900 to 1999.
  const begin = new Date(shown).setUTCMonth(0, 1)
  return Math.round((shown.getTime() - begin) / DAY_MS)
}

function zoneOf(offset: number, between: string): string {
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60]
  const [written, rest] = [hours, minutes].map((it) => String(it).padStart(2, '0'))
  return `${offset < 0 ? '-' : '+'}${written}${between}${rest}`
}

function timeOf({ shown }: Moment): string {
  return shown.toISOString().slice(-13, -5)
}

function dayAsInAmerica({ shown }: Moment): string {
  const [month, day] = shown.toISOString().slice(-19, -14).split('-')
  return `${month}/${day}/${String(shown.getUTCFullYear() % 100).padStart(2, '0')}`
}
