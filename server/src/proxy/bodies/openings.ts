import { mayHoldOddBraces } from './charset.ts'
import type { BodyKind, ContentType } from './content-type.ts'

/** How the braces that open an expression may be written, other than plainly. */
interface Opening {
  readonly pattern: RegExp
  /** What is in every such spelling. */
  readonly sign: string
}

const IN_JSON: Opening = { pattern: /(?:\{|\\u007[bB]){2}/g, sign: String.raw`\u007` }
const IN_FORM: Opening = { pattern: /(?:\{|%7[bB]){2}/g, sign: '%7' }

/** JSON and forms can spell the same text in several ways, and destinations do not tell them apart. */
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

/** Bytes of the longest way to write the braces. */
export const OPENING_BYTES_MAX = String.raw`\u007b\u007b`.length

/** Bytes of the longest way to write the braces in any character set: four per character. */
export const ODD_OPENING_BYTES_MAX = 4 * OPENING_BYTES_MAX

/**
 * Whether an expression may be in text whose braces are not ASCII bytes: in UTF-16 or UTF-32, whatever the label says, or in
 * what the label names.
 */
export function mayHoldOddExpression(bytes: Buffer, { kind, charset }: ContentType): boolean {
  if (OPENINGS[kind] === null || kind === 'unstated') return false
  return (
    (bytes.includes(0) && mayHoldExpression(withoutNulls(bytes), kind)) ||
    (charset !== null && !IGNORES_CHARSET.has(kind) && mayHoldOddBraces(bytes, charset))
  )
}

const IGNORES_CHARSET: ReadonlySet<BodyKind> = new Set(['json', 'json-lines'])

function withoutNulls(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replaceAll('\0', ''), 'latin1')
}

/** Whether an expression may be in some part of a body whose parts are not known. */
export function mayHoldExpressionInAnyPart(bytes: Buffer): boolean {
  return (
    mayHoldExpression(bytes, 'json') ||
    mayHoldExpression(bytes, 'form') ||
    WIDE_BRACES.some((it) => bytes.includes(it))
  )
}

/** Two braces in UTF-16 and UTF-32, of either byte order. */
const WIDE_BRACES = ['{\0{', '{\0\0\0{']

/** Whether an expression may be in a body, in ASCII bytes. Costs next to nothing when there is none. */
export function mayHoldExpression(bytes: Buffer, kind: BodyKind): boolean {
  const opening = OPENINGS[kind]
  if (opening === null) return false
  return bytes.includes('{{') || openingsOf(bytes, kind)(0) < Infinity
}

/**
 * Returns a way to ask where the next opening is, from a place on that never goes back; Infinity for none.
 *
 * Each search goes on where the last one ended: whoever asks of every string in megabytes has them looked
 * through once.
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
