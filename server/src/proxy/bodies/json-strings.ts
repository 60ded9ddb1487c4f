/**
 * Validates JSON as bytes, without parsing it into values, and visits its strings in place.
 *
 * Only the grammar is checked (RFC 8259): numbers of any length, duplicate names and bytes inside strings that are not UTF-8
 * pass, because none of them is written again. It loops instead of recursing, so only the length bounds the nesting depth.
 */
import { ERROR_PATH_CHARS_MAX } from '../../base/limits.ts'

/** Receives each string that is a value, quotes included; may call `trail` during the call for its location. */
export type StringVisitor = (from: number, to: number, trail: () => Trail) => void

/** The path to a value: for each step, the offset of the member's name, or ~index. */
export type Trail = readonly number[]

/**
 * Calls `visit` with every string of `bytes` that is a value, not with member names; returns whether the bytes are JSON.
 * With `several`, accepts one value after the other, as in JSON Lines.
 */
export function visitStrings(bytes: Buffer, several: boolean, visit: StringVisitor): boolean {
  /** The open brackets. */
  const open = new Uint8Array(bytes.length)
  let depth = 0
  /** Truncated at the depth an error can still report. */
  const trail: number[] = several ? [~0] : []
  const roots = trail.length
  /** The innermost bracket; 0 at the top level. */
  let inside = 0
  let state = VALUE
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0

  for (;;) {
    if (bytes[at]! <= 0x20) at = afterSpace(bytes, at)
    if (at === bytes.length) return state === DONE && depth === 0
    const byte = bytes[at]!
    if (state === DONE) {
      if (inside === 0) {
        if (!several) return false
        trail[0]!--
        state = VALUE
      } else if (byte === COMMA) {
        state = inside === OBJECT ? NAME : VALUE
        if (state === VALUE && depth <= TRAIL_MAX) trail[roots + depth - 1]!--
        at++
      } else if (byte === inside + CLOSING) {
        inside = --depth === 0 ? 0 : open[depth - 1]!
        at++
      } else return false
    } else if (state === NAME || state === FIRST_NAME) {
      if (byte === QUOTE) {
        const end = endOfString(bytes, at)
        const colon = end < 0 ? -1 : afterSpace(bytes, end)
        if (colon < 0 || bytes[colon] !== COLON) return false
        if (depth <= TRAIL_MAX) trail[roots + depth - 1] = at
        at = colon + 1
        state = VALUE
      } else if (byte === OBJECT + CLOSING && state === FIRST_NAME) {
        state = DONE
      } else return false
    } else if (byte === QUOTE) {
      const end = endOfString(bytes, at)
      if (end < 0) return false
      visit(at, end, () => trail.slice(0, roots + depth))
      at = end
      state = DONE
    } else if (byte === OBJECT || byte === ARRAY) {
      open[depth++] = byte
      inside = byte
      if (depth <= TRAIL_MAX) trail[roots + depth - 1] = ~0
      at++
      state = byte === OBJECT ? FIRST_NAME : FIRST_VALUE
    } else if (byte === ARRAY + CLOSING && state === FIRST_VALUE) {
      state = DONE
    } else {
      at = endOfWord(bytes, at)
      if (at < 0) return false
      state = DONE
    }
  }
}

/** The tokens that may come next. DONE follows a value, or stands where no value may. */
const VALUE = 0
const FIRST_VALUE = 1
const NAME = 2
const FIRST_NAME = 3
const DONE = 4

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const ARRAY = 0x5b
const BACKSLASH = 0x5c
const OBJECT = 0x7b
/** Closing bracket by opening bracket. */
const CLOSING = 2

/** A path in an error cannot have more steps than this. */
const TRAIL_MAX = ERROR_PATH_CHARS_MAX

function afterSpace(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++
  return at
}

/** Returns the offset after the string that opens at `from`; -1 if it is not a string. */
export function endOfString(bytes: Buffer, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) return at + 1
    if (byte < 0x20) return -1
    if (byte === BACKSLASH) {
      const escape = bytes[++at]
      if (escape === 0x75) {
        for (const end = at + 4; at < end; at++) if (!isHex(bytes[at + 1])) return -1
      } else if (escape === undefined || !ESCAPES.includes(escape)) return -1
    }
  }
  return -1
}

const ESCAPES = Buffer.from('"\\/bfnrt')

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
}

/** Returns the offset after the number, `true`, `false` or `null` at `from`; -1 if there is none. */
function endOfWord(bytes: Buffer, from: number): number {
  if (bytes[from]! <= ZERO + 9) return endOfNumber(bytes, from)
  const word = WORDS.get(bytes[from]!)
  if (word === undefined) return -1
  const end = from + word.length
  return bytes.compare(word, 0, word.length, from, Math.min(end, bytes.length)) === 0 ? end : -1
}

const WORDS = new Map(['true', 'false', 'null'].map((it) => [it.charCodeAt(0), Buffer.from(it)]))

function endOfNumber(bytes: Buffer, from: number): number {
  let at = from
  if (bytes[at] === MINUS) at++
  at = bytes[at] === ZERO ? at + 1 : endOfDigits(bytes, at)
  if (at > 0 && bytes[at] === POINT) at = endOfDigits(bytes, at + 1)
  if (at > 0 && (bytes[at]! | 0x20) === 0x65) {
    at++
    if (bytes[at] === MINUS || bytes[at] === PLUS) at++
    at = endOfDigits(bytes, at)
  }
  return at
}

const PLUS = 0x2b
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30

/** Returns -1 if there is no digit. */
function endOfDigits(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at]! >= ZERO && bytes[at]! <= ZERO + 9) at++
  return at === from ? -1 : at
}

/** Yields the names and indexes of a trail, each decoded on demand. */
export function* stepsOf(bytes: Buffer, trail: Trail): Generator<string | number, void> {
  for (const it of trail) yield it < 0 ? ~it : nameAt(bytes, it)
}

/** A name too long to be reported in full is left undecoded, escapes included. */
function nameAt(bytes: Buffer, from: number): string {
  const start = bytes.subarray(from, from + ERROR_PATH_CHARS_MAX * 6)
  const end = endOfString(start, 0)
  return end < 0
    ? start.toString('utf8', 1)
    : (JSON.parse(start.toString('utf8', 0, end)) as string)
}
