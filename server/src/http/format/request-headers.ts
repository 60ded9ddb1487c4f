/**
 * Checks request headers before the service relies on any of them.
 *
 * Node keeps the first or the last of a repeated header, or joins them, depending on its name, and silently drops those past a
 * count: either lets two readers see two requests (request smuggling). So headers that control this service may appear once, and
 * their number is bounded.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { HEADERS_MAX, IDEMPOTENCY_KEY_CHARS_MAX, TRACE_ID_CHARS_MAX } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import { NOT_WELL_FORMED } from '../connection/framing.ts'

/** Each has a bit of its own. */
const SINGLE = new Map(
  [
    'host',
    'bt-api-key',
    'bt-proxy-connection',
    'bt-proxy-dry-run',
    'bt-proxy-keep-alive',
    'bt-proxy-key',
    'bt-proxy-url',
    'content-type',
    'content-length',
    'bt-idempotency-key',
    'bt-transaction-id',
    'transfer-encoding',
  ].map((name, n) => [name, 1 << n]),
)

/**
 * `rawHeaders` alternates names and values.
 *
 * Throws `body_invalid` for an unsupported HTTP version, whatever Node makes of it, `headers_too_large`, `header_duplicated`, or
 * `header_invalid`: for a request without Host where `httpVersion` requires it, and for a transfer coding other than chunked or
 * one that HTTP/1.0 does not have (RFC 9112, sections 3.2, 6.1).
 */
export function checkHeaders(rawHeaders: readonly string[], httpVersion: string): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new ServiceError('body_invalid', NOT_WELL_FORMED)
  }
  if (rawHeaders.length > HEADERS_MAX * 2) throw new ServiceError('headers_too_large')
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const length = rawHeaders[at]!.length
    if (length !== 4 && (length < 10 || length > 19)) continue
    const name = rawHeaders[at]!.toLowerCase()
    const bit = SINGLE.get(name)
    if (bit === undefined) continue
    if (seen & bit) throw new ServiceError('header_duplicated', { [name]: ['Send it once.'] })
    seen |= bit
    if (name === 'transfer-encoding') checkCoding(rawHeaders[at + 1]!, httpVersion)
  }
  if ((seen & SINGLE.get('host')!) === 0 && httpVersion !== '1.0') {
    throw new ServiceError('header_invalid', { host: ['Send it.'] })
  }
}

function checkCoding(coding: string, httpVersion: string): void {
  if (httpVersion === '1.1' && coding.toLowerCase() === 'chunked') return
  const message = 'Send chunked and nothing else, with HTTP/1.1; or send Content-Length.'
  throw new ServiceError('header_invalid', { 'transfer-encoding': [message] })
}

/** Returns the caller's own trace id if it is usable, else undefined: it is only a label, never refused. */
export function traceIdOf(header: string | string[] | undefined): string | undefined {
  if (typeof header !== 'string' || header.length > TRACE_ID_CHARS_MAX) return undefined
  return VISIBLE.test(header) ? header : undefined
}

/** Throws `header_invalid` for a key that is empty, too long or not visible ASCII. */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (
    typeof header !== 'string' ||
    header.length > IDEMPOTENCY_KEY_CHARS_MAX ||
    !VISIBLE.test(header)
  ) {
    throw new ServiceError('header_invalid', {
      'BT-IDEMPOTENCY-KEY': [`Send 1 to ${IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters.`],
    })
  }
  return header
}

const VISIBLE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

const JSON_TYPE = /^application\/(?:[a-z0-9.!#$&^_+-]+\+)?json\s*(?:;|$)/i
const MERGE_PATCH_TYPE = /^application\/merge-patch\+json\s*(?:;|$)/i

/**
 * Throws `content_type_unsupported` unless a body may have this `contentType`.
 *
 * POST and PUT accept any JSON type and none at all; merge patches must declare theirs. `empty` says that the request has no
 * body: then any type is accepted, since some clients label an empty body as a form.
 */
export function checkContentType(
  expected: 'application/json' | 'application/merge-patch+json',
  contentType: string | undefined,
  empty: boolean,
): void {
  if (expected === 'application/merge-patch+json') {
    if (contentType !== undefined && MERGE_PATCH_TYPE.test(contentType)) return
    throw new ServiceError('content_type_unsupported')
  }
  if (empty || contentType === undefined || contentType === '' || JSON_TYPE.test(contentType))
    return
  throw new ServiceError('content_type_unsupported')
}

/**
 * Throws `content_type_unsupported` for a body in a content coding that people use, and names it. Whatever else stands there
 * (`identity`, `UTF-8`) names no coding, and is ignored.
 */
export function checkContentEncoding(encoding: string | undefined): void {
  const coding = CODINGS.exec(encoding ?? '')?.[0].toLowerCase()
  if (coding === undefined) return
  throw new ServiceError('content_type_unsupported', {
    'content-encoding': [`${coding} is not supported: send the body as it is.`],
  })
}

/** Source: the IANA registry of content codings, and aws-chunked. */
const CODINGS =
  /(?<![\w-])(?:x-)?(?:gzip|deflate|compress|br|zstd|dcb|dcz|exi|aes128gcm|aws-chunked)(?![\w-])/i

/** Whether a request with these headers has no body. */
export function isBodiless(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0')
}
