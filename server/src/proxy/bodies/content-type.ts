import { MIMEType, type MIMEParams } from 'node:util'
import { CONTENT_TYPE_CHARS_MAX } from '../../base/limits.ts'

/**
 * How a body is read. `unstated` has no type, or one that cannot be parsed. `opaque` and `unread` are forwarded unchanged;
 * the caller gets a notice about `unread`, which may contain text.
 */
export type BodyKind =
  | 'json'
  | 'json-lines'
  | 'form'
  | 'xml'
  | 'text'
  | 'multipart'
  | 'unstated'
  | 'unread'
  | 'opaque'

export interface ContentType {
  readonly kind: BodyKind
  /**
   * The label of its character set; null for none. JSON has no such parameter: there it only identifies bytes that are not
   * UTF-8.
   */
  readonly charset: string | null
  /** The delimiter between the parts of a multipart body; empty if it is ambiguous. */
  readonly boundary: string
}

/** Returns how a body of this content type is read. */
export function bodyKindOf(contentType: string | undefined): BodyKind {
  return parseContentType(contentType).kind
}

export function parseContentType(contentType: string | undefined): ContentType {
  if (contentType === undefined) return UNSTATED
  return contentType === 'application/json' ? JSON_TYPE : parse(contentType)
}

const UNSTATED: ContentType = { kind: 'unstated', charset: null, boundary: '' }
export const OPAQUE: ContentType = { kind: 'opaque', charset: null, boundary: '' }

/** Text in an encoding that hides expressions, such as base64. */
export const UNREAD: ContentType = { kind: 'unread', charset: null, boundary: '' }

/** The exact header value of nearly every request. */
const JSON_TYPE: ContentType = { kind: 'json', charset: null, boundary: '' }

function parse(contentType: string): ContentType {
  const type = parseMimeType(contentType)
  if (type === null) return contentType.length > CONTENT_TYPE_CHARS_MAX ? UNREAD : UNSTATED
  const { essence, params } = type
  const kind = kindOf(essence)
  return {
    kind,
    charset: params.get('charset'),
    boundary: kind === 'multipart' ? boundaryOf(contentType, params) : '',
  }
}

/** With two boundaries, one reader takes the first and another the last: treated as none. */
function boundaryOf(contentType: string, params: MIMEParams): string {
  const bare = contentType.replaceAll(TEXT, (text, end: string) => (end === '"' ? '' : text))
  const several = bare.match(/;\s*boundary\s*=/gi)
  return several?.length === 1 ? (params.get('boundary') ?? '') : ''
}

/**
 * A quoted text and its end, which is the end of input if it is never closed. A pattern for closed ones alone would search
 * for the end again from each quote in the text, which takes milliseconds in a few kilobytes.
 */
export const TEXT = /"(?:[^"\\]|\\[^]?)*("|$)/g

function parseMimeType(contentType: string): MIMEType | null {
  if (contentType.length > CONTENT_TYPE_CHARS_MAX) return null
  try {
    return new MIMEType(contentType)
  } catch {
    return null
  }
}

/** Types with a structure of their own, and textual types beside `text/*`. */
const KINDS: ReadonlyMap<string, BodyKind> = new Map<string, BodyKind>([
  ['application/json', 'json'],
  ['text/json', 'json'],
  ['application/x-ndjson', 'json-lines'],
  ['application/ndjson', 'json-lines'],
  ['application/jsonl', 'json-lines'],
  ['application/x-jsonlines', 'json-lines'],
  ['application/x-www-form-urlencoded', 'form'],
  ['application/xml', 'xml'],
  ['text/xml', 'xml'],
  ['multipart/form-data', 'multipart'],
  ['multipart/mixed', 'multipart'],
  ['multipart/related', 'multipart'],
  ['application/graphql', 'text'],
  ['application/javascript', 'text'],
  ['application/x-javascript', 'text'],
  ['application/ecmascript', 'text'],
  ['application/yaml', 'text'],
  ['application/x-yaml', 'text'],
  ['application/toml', 'text'],
  ['application/sql', 'text'],
])

function kindOf(essence: string): BodyKind {
  const known = KINDS.get(essence)
  if (known !== undefined) return known
  if (essence.endsWith('+json')) return 'json'
  if (essence.endsWith('+xml')) return 'xml'
  if (essence.startsWith('multipart/')) return 'unread'
  return essence.startsWith('text/') ? 'text' : 'opaque'
}
