/**
 * Finds expressions in a form (`application/x-www-form-urlencoded`): in its decoded values. A value with an expression is
 * encoded again, everything else stays as sent; names are never evaluated.
 */
import { textOf } from '../../expressions/text.ts'
import { memberPath } from '../../request/parse.ts'
import {
  refusal,
  UNDECODABLE,
  type ReplacementSpan,
  type Surroundings,
} from './replacement-span.ts'
import { openingsOf } from './openings.ts'

/** Throws `expression_invalid` with the location of the value, and `detokenize_tokens_max`. */
export function findInForm(
  bytes: Buffer,
  { charset, reader, steps }: Surroundings,
): ReplacementSpan[] {
  const spans: ReplacementSpan[] = []
  const nextOpening = openingsOf(bytes, 'form')
  for (let index = 0, start = 0; start <= bytes.length; index++) {
    const next = bytes.indexOf(AMPERSAND, start)
    const to = next < 0 ? bytes.length : next
    const span = nextOpening(start) < to ? spanIn(start, to, index) : null
    if (span !== null) spans.push(span)
    start = to + 1
  }
  return spans

  function spanIn(start: number, to: number, index: number): ReplacementSpan | null {
    const pair = bytes.subarray(start, to)
    const equals = pair.indexOf(EQUALS)
    if (equals < 0) return null
    const value = decode(pair.subarray(equals + 1))
    if (!value.includes('{{')) return null
    const path = (): string => memberPath([...steps, index])
    const text = charset.decode(value)
    if (text === null) throw refusal(path, UNDECODABLE)
    return {
      from: start + equals + 1,
      to,
      path,
      parts: reader.read(text, path),
      write: (it) => {
        const encoded = charset.encode(textOf(it, null))
        return encoded === null ? null : encode(encoded)
      },
    }
  }
}

const SPACE = 0x20
const PERCENT = 0x25
const PLUS = 0x2b
const EQUALS = 0x3d
const AMPERSAND = 0x26

/** A percent sign without two hexadecimal digits after it is literal. Source: WHATWG URL, section 1.3. */
function decode(bytes: Buffer): Buffer {
  const decoded = Buffer.alloc(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    const code = byte === PERCENT ? hexOf(bytes[at + 1]) * 16 + hexOf(bytes[at + 2]) : NaN
    if (code >= 0) at += 2
    decoded[length++] = code >= 0 ? code : byte === PLUS ? SPACE : byte
  }
  return decoded.subarray(0, length)
}

/** Returns NaN if `byte` is not a hexadecimal digit. */
function hexOf(byte: number | undefined): number {
  if (byte === undefined) return NaN
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : NaN
}

/** Source: WHATWG URL, section 5.2. */
function encode(bytes: Buffer): Buffer {
  const text = bytes
    .toString('latin1')
    .replaceAll(
      /[^\w*.\- ]/g,
      (it) => `%${it.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .replaceAll(' ', '+')
  return Buffer.from(text, 'latin1')
}
