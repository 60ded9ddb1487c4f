/**
 * What request headers must look like before anything else is believed.
 *
 * Node keeps the first or the last of a repeated header, or joins them, depending on its name, and drops
 * those past a count without a word: each is a way for two readers to see two requests. So headers that
 * steer this service may appear once, and their number is bounded.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { HEADERS_MAX, IDEMPOTENCY_KEY_CHARS_MAX, TRACE_ID_CHARS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { NOT_WELL_FORMED } from './framing.ts'

/** Each with a bit of its own. */
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
 * Throws `body_invalid` for a version of HTTP that is not spoken here, whatever Node takes for one,
 * `headers_too_large`, `header_duplicated`, or `header_invalid`: for a request without Host where `httpVersion` asks
 * for it, and for a body in another coding than chunked or in one that HTTP/1.0 does not know (RFC 9112, sections
 * 3.2, 6.1).
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

/** The caller's own trace id if it is usable, else undefined: it is only a label, never refused. */
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
 * Throws `content_type_unsupported` unless a body may come as `contentType`.
 *
 * POST and PUT take any JSON type and none at all; merge patches must say that they are. `empty` is
 * whether the request has no body: then any label will do, since some clients label nothing as a form.
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

/** Whether a request with these headers has no body. */
export function isBodiless(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0')
}
