/**
 * Builds the URL of a forwarded request: a configured or given base, followed by the path the caller requested after
 * `/proxy`.
 *
 * The result is one URL object, and no text is parsed again after it: two parsers could read the same text as two
 * destinations. The egress gateway decides whether anything may be sent there.
 *
 * Source: interface.md, Proxy.
 */
import { isUnambiguous } from '../base/absolute-url.ts'
import { PROXY_URL_CHARS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { mayHaveDotSegments } from './dot-segments.ts'

/** Parses a base. Throws `header_invalid`, since it comes in the header BT-PROXY-URL. */
export function parseBase(text: string | undefined): URL {
  if (text === undefined || text === '') throw invalid('Send it, or BT-PROXY-KEY.')
  if (text.length > PROXY_URL_CHARS_MAX) {
    throw invalid(`It must have at most ${PROXY_URL_CHARS_MAX} characters.`)
  }
  if (!isUnambiguous(text)) {
    throw invalid('It must be an absolute URL of printable ASCII, such as https://example.com/api.')
  }
  if (text.includes('#')) throw invalid('It must have no fragment.')
  const base = URL.parse(text)
  if (base === null) throw invalid('It must be a URL.')
  return base
}

/**
 * Returns the URL of `targetBelowPath` below `base`. `targetBelowPath` is empty or begins with `/` or `?`.
 *
 * Without a path, or with a single slash, the URL has the base's path as it is, with its trailing slash if it has one.
 * Otherwise the path is appended unchanged, and takes the place of trailing slashes of the base. The query follows that
 * of the base; an empty one stays, as a lone `?`. Decision 0067.
 *
 * Throws `path_invalid` for a path that might leave the base, in any encoding, so that a base is also a bound.
 *
 * Example: `https://example.com/api/` and `/foo?a=1` give `https://example.com/api/foo?a=1`; and `` gives
 * `https://example.com/api/`.
 */
export function joinDestination(base: URL, targetBelowPath: string): URL {
  // The router ends the path at a `#`; appending the rest would change the last segment of the base.
  if (targetBelowPath.startsWith('#')) throw new ServiceError('path_invalid')
  const at = targetBelowPath.indexOf('?')
  const path = at < 0 ? targetBelowPath : targetBelowPath.slice(0, at)
  if (path.includes('\\') || mayHaveDotSegments(path)) throw new ServiceError('path_invalid')

  const joined = new URL(base)
  if (path !== '' && path !== '/') {
    joined.pathname = base.pathname.replace(/\/+$/, '') + encoded(path)
  }
  if (at >= 0) {
    const queries = [base.search.slice(1), encoded(targetBelowPath.slice(at + 1))]
    // With its `?`, since the URL would otherwise take one away from the query, and drop an empty one.
    joined.search = `?${queries.filter((it) => it !== '').join('&')}`
  }
  return joined
}

/** Percent-encodes bytes beyond ASCII, which arrive as one character each, as bytes rather than as those characters. */
function encoded(text: string): string {
  return text.replaceAll(
    /[\u0080-\uffff]/g,
    (it) => `%${it.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
}

function invalid(message: string): ServiceError {
  return new ServiceError('header_invalid', { 'BT-PROXY-URL': [message] })
}
