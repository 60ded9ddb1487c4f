import type { Json } from '../../base/json.ts'

/**
 * Returns a function that redacts every value in `texts`, JSON each, from a line: a reactor's input must not leave
 * through its console. Given too many values, or after too many comparisons, it redacts whole lines. It does not
 * recognize values that are split up or encoded.
 */
export function redactor(texts: readonly string[]): (line: string) => string {
  const values = new Set<string>()
  for (const it of texts) collect(JSON.parse(it) as Json, values)
  if (values.size > VALUES_MAX) return () => REDACTED
  // If one value is a prefix of another, the longer one goes first.
  const longestFirst = [...values].toSorted((a, b) => b.length - a.length)
  let left = LOOKS_MAX
  return (line) => {
    left -= longestFirst.length * (1 + line.length / CHARS_LIKE_A_LOOK)
    return left < 0
      ? REDACTED
      : longestFirst.reduce((text, it) => text.replaceAll(it, REDACTED), line)
  }
}

/** Shorter values identify no person, and redacting them would cut up ordinary words. */
const CHARS_MIN = 3
/** Searching every line for more values would let one tenant slow down all others. */
const VALUES_MAX = 10_000
/**
 * Comparisons of one value with one line, at 25 to 50 ns each: all output of a run takes about a twentieth of a second.
 */
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
