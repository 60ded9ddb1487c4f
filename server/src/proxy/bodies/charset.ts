import { isUtf8 } from 'node:buffer'

/**
 * How the text of a body is written as bytes: those in which ASCII is itself and nothing else, so that braces
 * can be looked for in the bytes.
 */
export interface Charset {
  /** The last character that can be written. */
  readonly last: number
  /** Returns null for bytes that are no text in it. */
  readonly decode: (bytes: Buffer) => string | null
  /** Returns null for text that cannot be written in it. */
  readonly encode: (text: string) => Buffer | null
}

export const UTF8: Charset = {
  last: 0x10ffff,
  decode: (bytes) => (isUtf8(bytes) ? bytes.toString('utf8') : null),
  encode: (text) => (text.isWellFormed() ? Buffer.from(text, 'utf8') : null),
}

const ASCII: Charset = {
  last: 0x7f,
  decode: (bytes) => (HIGH_BYTE.test(bytes.toString('latin1')) ? null : bytes.toString('latin1')),
  encode: (text) => (BEYOND_ASCII.test(text) ? null : Buffer.from(text, 'latin1')),
}

const LATIN1: Charset = {
  last: 0xff,
  decode: (bytes) => bytes.toString('latin1'),
  encode: (text) => (BEYOND_LATIN1.test(text) ? null : Buffer.from(text, 'latin1')),
}

const HIGH_BYTE = /[\x80-\xff]/
const BEYOND_ASCII = /[^\0-\x7f]/
const BEYOND_LATIN1 = /[^\0-\xff]/

const CHARSETS: ReadonlyMap<string, Charset> = new Map([
  ['utf-8', UTF8],
  ['utf8', UTF8],
  ['us-ascii', ASCII],
  ['ascii', ASCII],
  ['iso-8859-1', LATIN1],
  ['latin1', LATIN1],
])

/** Returns null for one that we do not write: whatever is in it is left alone. */
export function findCharset(name: string): Charset | null {
  return CHARSETS.get(name.toLowerCase()) ?? null
}
