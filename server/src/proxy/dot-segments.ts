/**
 * Detects dot segments in a path as any server might read them.
 *
 * A destination may decode more than once, accept overlong UTF-8, ignore bytes that are not UTF-8, or normalize Unicode (NFKC,
 * or a Windows code page) after it has checked the path. Everything else that is not ASCII is forwarded as it is.
 *
 * Source: RFC 3986, section 3.3; RFC 3629, section 10; Unicode TR 36, section 3.
 */

/**
 * Whether `path`, with each byte beyond ASCII as one character, may be read as one with a segment that is `.` or `..`. A path
 * encoded more than ENCODINGS_MAX times counts as one that may.
 */
export function mayHaveDotSegments(path: string): boolean {
  const unescaped = decode(path, (ascii) => ascii)
  if (unescaped === null) return true
  if (!BEYOND_ASCII.test(unescaped)) return hasDotSegment(unescaped)
  return FOLDS.some((fold) => {
    const read = decode(unescaped, fold)
    return read === null || hasDotSegment(read)
  })
}

const BEYOND_ASCII = /[\x80-\xff]/

/** Some servers drop invisible characters, and some treat the text after a semicolon as a parameter of the segment. */
function hasDotSegment(path: string): boolean {
  const segments = path.replaceAll(/[\0-\x20\x7f]/g, '').split(/[/\\]/)
  return segments.some((it) => /^\.\.?(?:[;?#].*)?$/.test(it))
}

/** Decodes `path` until that changes nothing more; returns null if it is encoded too often. */
function decode(path: string, fold: (bytes: string) => string): string | null {
  let read = path
  for (let round = 0; round <= ENCODINGS_MAX; round++) {
    // Folded only once nothing is escaped, since a sequence may be split between two encodings.
    const unescaped = unescapeOnce(read)
    const next = unescaped === read ? fold(read) : unescaped
    if (next === read) return read
    read = next
  }
  return null
}

/** No legitimate path is encoded this often, and each pass scans a long path again. */
const ENCODINGS_MAX = 8

/** Decodes `%2e` to its byte, and `%u002e`, an encoding of IIS, to UTF-8. */
function unescapeOnce(path: string): string {
  return path.replaceAll(/%(?:u([0-9a-f]{4})|([0-9a-f]{2}))/gi, (_escape, unit, byte) => {
    if (unit === undefined) return String.fromCharCode(Number.parseInt(byte, 16))
    return Buffer.from(String.fromCharCode(Number.parseInt(unit, 16))).toString('latin1')
  })
}

/** The readings of bytes that are not UTF-8: some decoders drop them, others combine the low bits of what they take for a sequence. */
const FOLDS: readonly ((bytes: string) => string)[] = [
  (bytes) => bytes.replaceAll(SEQUENCE_OR_BYTE, foldSequence),
  (bytes) => bytes.replaceAll(SLOPPY, foldSequence).replaceAll(SEQUENCE_OR_BYTE, foldSequence),
]

/** A UTF-8 sequence, perhaps overlong and of a length that UTF-8 allowed at first; or a byte that is part of none. */
const SEQUENCE_OR_BYTE =
  /[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}|[\xf8-\xfb][\x80-\xbf]{4}|[\xfc\xfd][\x80-\xbf]{5}|[\x80-\xff]/g

/** An overlong sequence for ASCII whose later bytes need not look like such: in `%c0%2e`, their low bits are those of a dot. */
const SLOPPY =
  // oxlint-disable-next-line no-control-regex -- bytes whose low bits are zero
  /[\xc0\xc1][^]|\xe0[\0\x01@A\x80\x81\xc0\xc1][^]|\xf0[\0@\x80\xc0][\0\x01@A\x80\x81\xc0\xc1][^]/g

/** Returns what a sequence may be normalized to if that is ASCII; else the sequence. */
function foldSequence(bytes: string): string {
  if (bytes.length === 1) return ''
  const [first, ...later] = Buffer.from(bytes, 'latin1')
  const lead = first! & (0x7f >> bytes.length)
  const code = later.reduce((sum, it) => sum * 64 + (it & 0x3f), lead)
  if (code < 0x80) return String.fromCharCode(code)
  if (code > 0x10_ffff) return ''
  const char = String.fromCodePoint(code)
  if (/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cs}]/u.test(char)) return ''
  const folded = BEST_FITS.get(char) ?? char.normalize('NFKC')
  return /^[\0-\x7f]*$/.test(folded) ? folded : bytes
}

/** Separators that Windows code pages make of characters, and NFKC does not. */
const BEST_FITS: ReadonlyMap<string, string> = new Map([
  ['\u2044', '/'],
  ['\u2215', '/'],
  ['\u2216', '\\'],
  ['\u00a5', '\\'],
  ['\u20a9', '\\'],
])
