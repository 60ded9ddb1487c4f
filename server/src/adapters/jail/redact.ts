import type { Json } from '../../base/json.ts'

/**
 * Returns what takes every value of `texts`, JSON each, out of a line: what a reactor was handed must not come out
 * by its console; where it was handed too much to look for, or says so much that it was looked for often enough, nothing
 * does any more. A value in another form, cut up or encoded, is not known again.
 */
export function redactor(texts: readonly string[]): (line: string) => string {
  const values = new Set<string>()
  for (const it of texts) collect(JSON.parse(it) as Json, values)
  if (values.size > VALUES_MAX) return () => REDACTED
  // Of two values one of which begins the other, the longer is taken out first.
  const longestFirst = [...values].toSorted((a, b) => b.length - a.length)
  let left = LOOKS_MAX
  return (line) => {
    left -= longestFirst.length * (1 + line.length / CHARS_LIKE_A_LOOK)
    return left < 0
      ? REDACTED
      : longestFirst.reduce((text, it) => text.replaceAll(it, REDACTED), line)
  }
}

/** What is shorter says nothing about anybody, and would take every other word apart. */
const CHARS_MIN = 3
/** To look for more of them in every line is work that one tenant makes for all. */
const VALUES_MAX = 10_000
/** Of one value in one line each, some 25 to 50 ns: all that a run says takes about a twentieth of a second. */
const LOOKS_MAX = 1_000_000
const CHARS_LIKE_A_LOOK = 64
const REDACTED = '[redacted]'

function collect(value: Json, values: Set<string>): void {
  if (typeof value === 'string' || typeof value === 'number') {
    const text = String(value)
    if (text.length >= CHARS_MIN) values.add(text)
  } else if (typeof value === 'object' && value !== null) {
    for (const it of Object.values(value)) collect(it, values)
  }
}
