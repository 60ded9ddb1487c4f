import { mayHoldNonAsciiBraces } from './charset.ts'
import type { BodyKind, ContentType } from './content-type.ts'

/** The escaped spellings of the braces that open an expression. */
interface Opening {
  readonly pattern: RegExp
  /** A text that every such spelling contains. */
  readonly sign: string
}

const IN_JSON: Opening = { pattern: /(?:\{|\\u007[bB]){2}/g, sign: String.raw`\u007` }
const IN_FORM: Opening = { pattern: /(?:\{|%7[bB]){2}/g, sign: '%7' }

/** JSON and forms can spell the same text in several ways, and destinations treat them alike. */
const OPENINGS: Readonly<Record<BodyKind, Opening | 'plain' | null>> = {
  json: IN_JSON,
  'json-lines': IN_JSON,
  form: IN_FORM,
  xml: 'plain',
  text: 'plain',
  multipart: null,
  unstated: IN_JSON,
  unread: null,
  opaque: null,
}

/** Length in bytes of the longest spelling of the braces. */
export const OPENING_BYTES_MAX = String.raw`\u007b\u007b`.length

/** Length in bytes of the longest spelling of the braces in any character set: four per character. */
export const NON_ASCII_OPENING_BYTES_MAX = 4 * OPENING_BYTES_MAX

/**
 * Whether text with braces that are not ASCII bytes may hold an expression: in UTF-16 or UTF-32, whatever the label says,
 * or in the character set of the label.
 */
export function mayHoldNonAsciiExpression(bytes: Buffer, { kind, charset }: ContentType): boolean {
  if (OPENINGS[kind] === null || kind === 'unstated') return false
  return (
    (bytes.includes(0) && mayHoldExpression(withoutNulls(bytes), kind)) ||
    (charset !== null && !IGNORES_CHARSET.has(kind) && mayHoldNonAsciiBraces(bytes, charset))
  )
}

const IGNORES_CHARSET: ReadonlySet<BodyKind> = new Set(['json', 'json-lines'])

function withoutNulls(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replaceAll('\0', ''), 'latin1')
}

/** Whether any part of a body may hold an expression, if its parts are not known. */
export function mayHoldExpressionInAnyPart(bytes: Buffer): boolean {
  return (
    mayHoldExpression(bytes, 'json') ||
    mayHoldExpression(bytes, 'form') ||
    WIDE_BRACES.some((it) => bytes.includes(it))
  )
}

/** Two braces in UTF-16 and UTF-32, in both byte orders. */
const WIDE_BRACES = ['{\0{', '{\0\0\0{']

/** Whether a body may hold an expression in ASCII bytes. Nearly free if there is none. */
export function mayHoldExpression(bytes: Buffer, kind: BodyKind): boolean {
  const opening = OPENINGS[kind]
  if (opening === null) return false
  return bytes.includes('{{') || openingsOf(bytes, kind)(0) < Infinity
}

/**
 * Returns a function that gives the next opening from an offset on; Infinity for none. Offsets must never decrease.
 *
 * Each search continues from the last result, so asking for every string of a body of megabytes scans it only once.
 */
export function openingsOf(bytes: Buffer, kind: BodyKind): (from: number) => number {
  const search = searchOf(bytes, OPENINGS[kind])
  let next = -1
  return (from) => {
    if (next < from) {
      const found = search(from)
      next = found < 0 ? Infinity : found
    }
    return next
  }
}

function searchOf(bytes: Buffer, opening: Opening | 'plain' | null): (from: number) => number {
  if (opening === null) return () => -1
  if (opening === 'plain' || !bytes.includes(opening.sign)) {
    return (from) => bytes.indexOf('{{', from)
  }
  const { pattern } = opening
  const text = bytes.toString('latin1')
  return (from) => {
    pattern.lastIndex = from
    return pattern.exec(text)?.index ?? -1
  }
}
