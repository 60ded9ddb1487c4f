/**
 * Character sets of bodies: resolves labels, and selects those in which expressions can be replaced at the byte level.
 *
 * Labels are those of the WHATWG Encoding standard, section 4.2, and of the IANA registry, case-insensitive.
 */
import { isUtf8 } from 'node:buffer'

/** A character set in which an ASCII byte is always that ASCII character, so that braces can be found in the bytes. */
export interface Charset {
  /** The highest code point that may be inserted. */
  readonly last: number
  /** Returns null for bytes that are not valid text in this character set, or that are only partly known. */
  readonly decode: (bytes: Buffer) => string | null
  /** Returns null for text that cannot be encoded, or whose bytes are not known. */
  readonly encode: (text: string) => Buffer | null
}

export const UTF8: Charset = {
  last: 0x10ffff,
  decode: (bytes) => (isUtf8(bytes) ? bytes.toString('utf8') : null),
  encode: (text) => (text.isWellFormed() ? Buffer.from(text, 'utf8') : null),
}

/**
 * ASCII, and every superset of it with one meaning per byte or with high bytes for all other characters: windows-1251,
 * ISO-8859-15, EUC-JP. High bytes around an expression are kept; inside one they are rejected, and only ASCII is inserted,
 * because the byte of `é` in Latin-1 is another letter in windows-1251.
 */
export const ASCII: Charset = {
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

const IS_UTF8 = /^(?:(?:x-)?(?:unicode-1-1-|unicode20)?utf[-_]?8(?:mb[34])?)$/
const IS_LATIN1 =
  /^(?:iso[-_]?8859[-_]?1(?:[-_:]1987)?|latin-?1|l1|iso-ir-100|csisolatin1|(?:cp|ibm)819)$/

/** Single-byte character sets, and multi-byte ones whose bytes are all above 0x7f; the lower half is ASCII. */
const IS_ASCII_SUPERSET = new RegExp(
  `^(?:${[
    String.raw`(?:us-?)?ascii|ansi_x3\.4-19\d\d|iso-ir-6|iso_?646(?:-us|\.irv:1991)|cp367|ibm367`,
    String.raw`(?:x-)?(?:windows|cp|win|ibm|ms|dos|x-cp)?[-_]?(?:125[0-8]|874|437|85[0-8]|86[0-6]|869)`,
    String.raw`iso[-_]?8859[-_]?(?:[2-9]|1[0-6])(?:[-_:](?:e|i|19\d\d|20\d\d))?`,
    String.raw`latin-?(?:[2-9]|10)|l(?:[2-9]|10)|csisolatin\w+|iso-ir-(?:10[19]|110|126|127|138|144|148|157|199|203|226)`,
    String.raw`arabic|cyrillic|greek8?|hebrew|logical|visual|ecma-11[48]|elot_928|asmo-708`,
    String.raw`koi|koi8(?:[-_](?:e|r|t|u|ru))?|cskoi8r|(?:x-)?mac(?:intosh|-?roman|-cyrillic|-ukrainian)?|csmacintosh`,
    String.raw`tis-?620|(?:x-)?euc-?(?:jp|kr|tw|cn)|cseuc(?:kr|pkdfmtjapanese)|viscii|armscii-8|georgian-ps`,
  ].join('|')})$`,
)

/**
 * ASCII as long as no byte is above 0x7f; a multi-byte character may end in any low byte, a brace included. Browsers read
 * KS C 5601 as EUC-KR, which has low trail bytes.
 */
const IS_ASCII_WITH_LOW_TRAILS = new RegExp(
  `^(?:${[
    String.raw`(?:x-|cs|ms_)?(?:shift[-_]?jis|sjis|shiftjis|kanji)|windows-?31j|(?:cp|ms|windows-?)?93[26]|(?:cp|ms|windows-?)?9(?:49|50)`,
    String.raw`(?:x-|cs)?(?:gbk|gb[-_]?2312(?:-?80)?|gb18030|big5(?:-?hkscs)?|x-x-big5|cn-big5|iso58gb2312(?:80)?)|chinese|iso-ir-58|gb_2312-80`,
    String.raw`ks_?c_?5601(?:[-_]19(?:87|89))?|korean|csksc56011987|iso-ir-149|uhc|johab`,
  ].join('|')})$`,
)

/** Braces take two or four bytes, or are different bytes. */
const IS_WIDE =
  /^(?:(?:cs)?unicode(?:fffe|feff)?|(?:x-)?utf[-_]?(?:16|32)(?:[-_]?[lb]e)?|(?:iso-10646-)?ucs[-_]?[24](?:[lb]e)?|iso-10646)$/

/**
 * Returns the character set for replacing expressions in a body with this label; null if that is not safe. A body without
 * a label is UTF-8, or a character set only its sender knows.
 */
export function charsetOf(label: string | null, bytes: Buffer): Charset | null {
  const name = label?.trim().toLowerCase() ?? ''
  if (name === '') return isUtf8(bytes) ? UTF8 : ASCII
  if (IS_UTF8.test(name)) return UTF8
  if (IS_LATIN1.test(name)) return LATIN1
  if (IS_ASCII_SUPERSET.test(name)) return ASCII
  if (IS_ASCII_WITH_LOW_TRAILS.test(name)) return isAscii(bytes) ? ASCII : null
  return null
}

/** Whether a document that begins with ASCII bytes cannot be in it. */
export function isWide(label: string): boolean {
  return IS_WIDE.test(label.toLowerCase()) || IS_EBCDIC.test(label.toLowerCase())
}

/** Whether `label` names a known character set. */
export function isCharset(label: string): boolean {
  return label !== '' && (charsetOf(label, EMPTY) !== null || isWide(label) || IS_UTF7.test(label))
}

const IS_UTF7 = /^(?:unicode-[12]-[01]-|x-unicode-2-0-|cs)?utf-?7(?:-imap)?$/i

const EMPTY = Buffer.alloc(0)

function isAscii(bytes: Buffer): boolean {
  return isUtf8(bytes) && !HIGH_BYTE.test(bytes.toString('latin1'))
}

const IS_EBCDIC =
  /ebcdic|^(?:x-)?(?:ibm|cp)-?(?:0?(?:37|273|277|278|280|284|285|290|297)|42[034]|500|87[01]|880|905|1026|1047|11[4]\d)$/

/** The bytes of `{` in the national variants of EBCDIC, as glibc's iconv writes them. */
const EBCDIC_BRACES = [0xc0, 0x43, 0x9c, 0x44, 0x51, 0x8e, 0x48]

/** Whether `bytes` may contain two opening braces that the character set `label` does not encode as two ASCII bytes. */
export function mayHoldNonAsciiBraces(bytes: Buffer, label: string): boolean {
  const name = label.toLowerCase()
  if (IS_EBCDIC.test(name)) return hasEbcdicBraces(bytes)
  return IS_UTF7.test(name) && hasShiftedBrace(bytes)
}

function hasEbcdicBraces(bytes: Buffer): boolean {
  return EBCDIC_BRACES.some((it) => bytes.includes(Buffer.of(it, it)))
}

/** UTF-7 encodes any character as base64 of UTF-16, after a plus sign. Source: RFC 2152. */
function hasShiftedBrace(bytes: Buffer): boolean {
  return Array.from(bytes.toString('latin1').matchAll(/\+([A-Za-z0-9+/]{3,})/g)).some(([, run]) => {
    const units = Buffer.from(run!, 'base64')
    for (let at = 0; at + 1 < units.length; at += 2) {
      if (units[at] === 0 && units[at + 1] === 0x7b) return true
    }
    return false
  })
}
