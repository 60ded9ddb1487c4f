/**
 * Lengths in characters, one unit for all limits and positions: Unicode code points, as JSON Schema counts `maxLength`. An
 * emoji is one or more, never the two halves that JavaScript sees. Half a pair counts as one.
 */

/** Whether `text` has more than `max` characters; reads at most twice as much of it. */
export function isLongerThan(text: string, max: number): boolean {
  if (text.length <= max) return false
  if (text.length > max * 2) return true
  return charactersIn(text) > max
}

export function charactersIn(text: string): number {
  return characterAt(text, text.length) - 1
}

/** Returns the position of the character at `index` of a string as errors state it, from 1. */
export function characterAt(text: string, index: number): number {
  let position = 1
  for (let at = 0; at < index; position++) at += text.codePointAt(at)! > 0xffff ? 2 : 1
  return position
}
