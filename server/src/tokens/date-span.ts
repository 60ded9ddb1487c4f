/** The span a date covers, in epoch milliseconds, both ends inclusive: a whole day, or a whole second. */
export interface DateSpan {
  readonly from: number
  readonly to: number
}

/**
 * Parses `2026-03-01`, `2026-03-01T12:00`, `2026-03-01T12:00:00`, `2026-03-01T12:00:00.5`, the last three
 * with `Z` or an offset, or in UTC. Returns null for anything else, and for days that no calendar has.
 */
export function parseDateSpan(text: string): DateSpan | null {
  const found = DATE.exec(text)
  if (found === null) return null
  const [, year, month, day, hour, minute, second, fraction, sign, offsetHours, offsetMinutes] =
    found.map((it) => it ?? '0')
  const midnight = Date.UTC(Number(year), Number(month) - 1, Number(day))
  if (new Date(midnight).toISOString().slice(0, 10) !== `${year}-${month}-${day}`) return null
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return null
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * MINUTE_MS
  const from =
    midnight +
    (Number(hour) * 60 + Number(minute)) * MINUTE_MS +
    Number(second) * 1000 +
    Math.floor(Number(`0.${fraction}`) * 1000) -
    (sign === '-' ? -offset : offset)
  return { from, to: from + widthOf(found) - 1 }
}

const DATE =
  /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d):(\d\d))?)?$/

const MINUTE_MS = 60_000

/** Returns the width of the smallest part given. */
function widthOf([, , , , hour, , second, fraction]: RegExpExecArray): number {
  if (fraction !== undefined) return 1
  if (second !== undefined) return 1000
  return hour === undefined ? 24 * 60 * MINUTE_MS : MINUTE_MS
}
