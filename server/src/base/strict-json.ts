/**
 * Strict parser for JSON from outside (decision 0010).
 *
 * A vault must give back exactly what it was given, so it refuses input that JavaScript would alter: bytes that are not UTF-8,
 * lone surrogates, numbers that are not finite or whose digits a double cannot hold. Nesting is bounded before parsing, since the
 * parser itself would follow any depth. So are members, since each may have a new name, which costs a microsecond, and array
 * items, of which five million bytes hold half as many. `__proto__` is an ordinary key.
 */
import { isUtf8 } from 'node:buffer'
import { isJsonObject, type Json } from './json.ts'
import { JSON_DEPTH_MAX, JSON_ITEMS_MAX, JSON_PARTS_MAX } from './limits.ts'
import { ServiceError } from './service-error.ts'
import { findJsonFault } from './json-fault.ts'

/** Returns the value of `bytes`, or throws `body_json_invalid`. No message repeats what was sent. */
export function parseStrictJson(bytes: Buffer): Json {
  const { value, text } = parseBounded(bytes)
  if (SUSPICIOUS.test(text)) refuseWhatWouldBend(value, text)
  return value
}

/**
 * Like parseStrictJson(), but with the numbers and texts that JavaScript makes of those that it alters: for what the service reads,
 * and does not give back.
 */
export function parseBoundedJson(bytes: Buffer): Json {
  return parseBounded(bytes).value
}

function parseBounded(bytes: Buffer): { readonly value: Json; readonly text: string } {
  if (!isUtf8(bytes)) throw invalid(notUtf8(bytes))
  const { depth, parts, items } = formOf(bytes, JSON_DEPTH_MAX)
  if (depth > JSON_DEPTH_MAX) {
    throw invalid(`The body is nested deeper than ${JSON_DEPTH_MAX} levels.`)
  }
  if (parts > JSON_PARTS_MAX) {
    throw invalid(`The body has more than ${JSON_PARTS_MAX} members, objects and arrays together.`)
  }
  if (items > JSON_ITEMS_MAX) {
    throw invalid(`The body has more than ${JSON_ITEMS_MAX} members and items of arrays together.`)
  }
  const text = bytes.toString('utf8')
  return { value: parse(text), text }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw invalid(findJsonFault(text)!.message)
  }
}

/** Names what the bytes are instead, if they begin with its mark. */
function notUtf8(bytes: Buffer): string {
  const mark = bytes.toString('latin1', 0, 2)
  if (mark === '\x1f\x8b') return 'The body is compressed with gzip: send it as it is.'
  if (mark === '\xff\xfe' || mark === '\xfe\xff') return 'The body is UTF-16: send it as UTF-8.'
  return 'The body is not UTF-8.'
}

/** Counts taken of a body before it is parsed. */
interface Form {
  /** Nesting depth of arrays and objects, counted up to one past the limit. */
  readonly depth: number
  /** Number of objects, arrays and their members. */
  readonly parts: number
  /** Number of members and items; an empty container counts as one. */
  readonly items: number
}

function formOf(bytes: Buffer, depthMax: number): Form {
  let [depth, deepest, members, opened, commas] = [0, 0, 0, 0, 0]
  for (let at = 0; at < bytes.length && deepest <= depthMax; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      at = closingQuote(bytes, at + 1)
    } else if (byte === COMMA) commas++
    else if (byte === COLON) members++
    else if (byte === 0x5b || byte === 0x7b) {
      opened++
      if (++depth > deepest) deepest = depth
    } else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return { depth: deepest, parts: members + opened, items: commas + opened }
}

/** Returns where the string ends that begins at `at`: at its quote, or at the end of the bytes if it has none. */
function closingQuote(bytes: Buffer, from: number): number {
  let at = from
  for (const soon = Math.min(bytes.length, at + SHORT_STRING); at < soon; at++) {
    if (bytes[at] === QUOTE) return at
    if (bytes[at] === BACKSLASH) at++
  }
  // A search in native code: begun for every string, it would cost more than it saves.
  for (;;) {
    const end = bytes.indexOf(QUOTE, at)
    if (end < 0) return bytes.length
    let escapes = 0
    while (end - escapes > at && bytes[end - escapes - 1] === BACKSLASH) escapes++
    if (escapes % 2 === 0) return end
    at = end + 1
  }
}

const SHORT_STRING = 64
const QUOTE = 0x22
const COLON = 0x3a
const COMMA = 0x2c
const BACKSLASH = 0x5c

/**
 * A text without any of these needs no closer look: sixteen digits, perhaps with a point, not opened by a quote; an exponent of
 * two digits; an escaped surrogate. A double keeps every number of fifteen digits.
 */
const SUSPICIOUS = /(?:^|[^"\d.])[\d.]{16}|\d[eE]\+?\d\d|\\u[dD][89a-fA-F]/

function refuseWhatWouldBend(value: Json, text: string): void {
  let unsafe = false
  visit(value)
  if (unsafe && losesDigits(text)) {
    throw invalid('A number has more digits than can be kept exactly: send it as a string.')
  }

  function visit(it: Json): void {
    if (typeof it === 'number') {
      if (!Number.isFinite(it)) throw invalid('A number is too large.')
      if (Number.isInteger(it) && !Number.isSafeInteger(it)) unsafe = true
    } else if (typeof it === 'string') refuseLoneSurrogates(it)
    else if (Array.isArray(it)) for (const item of it) visit(item)
    else if (isJsonObject(it)) {
      for (const key of Object.keys(it)) {
        refuseLoneSurrogates(key)
        visit(it[key]!)
      }
    }
  }
}

function refuseLoneSurrogates(text: string): void {
  if (!text.isWellFormed()) throw invalid('A string holds half of a surrogate pair.')
}

/**
 * Whether an integer, in any notation, has another value once it is a double and written again. `1e300` keeps its value, and so
 * does `9007199254740993.5`, which is no integer; `9007199254740993.0` does not.
 *
 * `text` is JSON. It is scanned by hand: the parser reveals how a number was written only through a callback for every value, and
 * millions of values block the event loop for seconds.
 */
function losesDigits(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (isDigit(code)) {
      const from = at
      at = endOfNumber(text, at)
      if (at - from >= EXACT_DIGITS && isBent(text.slice(from, at + 1))) return true
    }
  }
  return false
}

function isBent(literal: string): boolean {
  const sent = decimalOf(literal)
  if (sent.digits === '' || sent.exponent < 0) return false
  const kept = decimalOf(String(Number(literal)))
  return sent.digits !== kept.digits || sent.exponent !== kept.exponent
}

/** Returns the value as an integer without zeros at its end, and a power of ten: 12 and 2 for `1200.0` and `1.2e3`. */
function decimalOf(literal: string): { readonly digits: string; readonly exponent: number } {
  const [mantissa, power = '0'] = literal.toLowerCase().split('e')
  const [whole, fraction = ''] = mantissa!.split('.')
  const all = whole! + fraction
  // By hand: a pattern for zeros at the end is tried at each of a million zeros before it.
  let [from, to] = [0, all.length]
  while (all[from] === '0') from++
  while (to > from && all[to - 1] === '0') to--
  const dropped = all.length - to
  return { digits: all.slice(from, to), exponent: Number(power) - fraction.length + dropped }
}

/** A number of fewer characters than this, without its sign, is kept exactly if it is an integer. */
const EXACT_DIGITS = 15

/** Returns the position of the quote that closes the string opened at `at`. */
function endOfString(text: string, at: number): number {
  let end = at + 1
  for (; text.charCodeAt(end) !== QUOTE; end++) if (text.charCodeAt(end) === BACKSLASH) end++
  return end
}

/** Returns the last position of the number that contains `at`. */
function endOfNumber(text: string, at: number): number {
  let end = at
  while (isOfNumber(text.charCodeAt(end + 1))) end++
  return end
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** Whether it is a digit, or one of `.eE+-`. */
function isOfNumber(code: number): boolean {
  if (isDigit(code)) return true
  return code === 0x2e || code === 0x65 || code === 0x45 || code === 0x2b || code === 0x2d
}

function invalid(message: string): ServiceError {
  return new ServiceError('body_json_invalid', { error: [message] })
}
