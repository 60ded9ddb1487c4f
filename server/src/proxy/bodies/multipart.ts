/**
 * Parses multipart bodies (`multipart/form-data`, `mixed` and `related`) strictly: if two readers could see different lists
 * of parts, it returns none. Source: RFC 2046, section 5.1; RFC 2387; RFC 7578.
 */
import { MULTIPART_PARTS_MAX, PART_HEADER_SECTION_BYTES_MAX } from '../../base/limits.ts'
import { OPAQUE, parseContentType, TEXT, UNREAD, type ContentType } from './content-type.ts'

export interface Part {
  /** Start of its content, in bytes. */
  readonly from: number
  readonly to: number
  /** The type of its content; opaque for files. */
  readonly type: ContentType
}

/** Returns null if the body is not well-formed, or too unusual to be unambiguous. */
export function splitParts(bytes: Buffer, boundary: string): Part[] | null {
  const delimiter = delimiterOf(boundary)
  const first = delimiter === null ? -1 : afterPreamble(bytes, delimiter)
  if (delimiter === null || first < 0) return null
  const parts: Part[] = []
  let at = first
  for (;;) {
    if (bytes.toString('latin1', at, at + 2) === '--') {
      const epilogue = afterPadding(bytes, at + 2)
      return epilogue >= 0 && bytes.indexOf(delimiter, epilogue) < 0 ? parts : null
    }
    const start = afterPadding(bytes, at)
    if (start < 0) return null
    const headerSectionEnd =
      bytes.toString('latin1', start, start + 2) === '\r\n'
        ? start - 2
        : bytes.indexOf('\r\n\r\n', start)
    const end = bytes.indexOf(`\r\n${delimiter}`, headerSectionEnd + 2)
    if (headerSectionEnd < 0 || end < 0 || headerSectionEnd - start > PART_HEADER_SECTION_BYTES_MAX)
      return null
    if (parts.length === MULTIPART_PARTS_MAX) return null
    const type = parseHeaderSection(
      bytes.toString('latin1', start, Math.max(headerSectionEnd, start)),
    )
    if (type === null) return null
    parts.push({ from: headerSectionEnd + 4, to: Math.max(end, headerSectionEnd + 4), type })
    at = end + 2 + delimiter.length
  }
}

/** Returns the end of the first delimiter; -1 if there is none, or if it does not begin a line. */
function afterPreamble(bytes: Buffer, delimiter: string): number {
  const at = bytes.indexOf(delimiter)
  const begins = at === 0 || (at > 1 && bytes[at - 2] === 0x0d && bytes[at - 1] === 0x0a)
  return begins ? at + delimiter.length : -1
}

/** Returns null if `boundary` is not a valid boundary. */
export function delimiterOf(boundary: string): string | null {
  return BOUNDARY.test(boundary) ? `--${boundary}` : null
}

const BOUNDARY = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/

/** Returns the start of the next line, or the end, if only white space precedes it; otherwise -1. */
function afterPadding(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x09) at++
  if (at === bytes.length) return at
  return bytes[at] === 0x0d && bytes[at + 1] === 0x0a ? at + 2 : -1
}

/** Returns how the content below these headers is read; null if they are not well-formed. */
export function parseHeaderSection(headerSection: string): ContentType | null {
  const headers = new Map<string, string>()
  const unfolded = headerSection.replaceAll(/\r\n[\t ]/g, ' ')
  for (const line of unfolded === '' ? [] : unfolded.split('\r\n')) {
    const [, name, value] = HEADER.exec(line) ?? []
    if (name === undefined || value === undefined || headers.has(name.toLowerCase())) return null
    headers.set(name.toLowerCase(), value.trim())
  }
  const disposition = headers.get('content-disposition') ?? ''
  let closed = true
  const withoutTexts = disposition.replaceAll(TEXT, (_text, end: string) => {
    closed &&= end === '"'
    return '""'
  })
  if (!closed) return null
  const encoding = headers.get('content-transfer-encoding') ?? 'binary'
  const file = /;\s*filename\*?\d*\*?\s*=/i.test(withoutTexts)
  const type = parseContentType(headers.get('content-type') ?? 'text/plain')
  if (file || !READ.has(type.kind)) return OPAQUE
  return /^(?:7bit|8bit|binary)$/i.test(encoding) ? type : UNREAD
}

const HEADER = /^([\w!#$%&'*+.^`|~-]+):((?:\t|\P{Cc})*)$/u

/** Kinds of parts that are inspected; all others are forwarded unchanged. Nested parts are `multipart`. */
const READ: ReadonlySet<string> = new Set([
  'json',
  'json-lines',
  'form',
  'xml',
  'text',
  'multipart',
])
