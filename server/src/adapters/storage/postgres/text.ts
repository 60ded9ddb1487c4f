/**
 * Stores text as it is, except for NUL, which PostgreSQL text cannot hold.
 *
 * NUL and the escape character become two characters each, so a prefix of a text stays a prefix when packed.
 */

/** Encodes text as a statement parameter. */
export function packText(text: string): string {
  return RESERVED.test(text) ? text.replaceAll(EACH_RESERVED, (it) => PACKED[it]!) : text
}

/** Decodes text from a column. */
export function unpackText(packed: string): string {
  return packed.includes('\u0001') ? packed.replaceAll(EACH_PACKED, (it) => UNPACKED[it]!) : packed
}

export function packOptional(text: string | null): string | null {
  return text === null ? null : packText(text)
}

// oxlint-disable-next-line no-control-regex
const RESERVED = /[\0\u0001]/
// oxlint-disable-next-line no-control-regex
const EACH_RESERVED = /[\0\u0001]/g
// oxlint-disable-next-line no-control-regex
const EACH_PACKED = /\u0001./gs
const PACKED: Readonly<Record<string, string>> = { '\0': '\u0001n', '\u0001': '\u0001s' }
const UNPACKED: Readonly<Record<string, string>> = { '\u0001n': '\0', '\u0001s': '\u0001' }
