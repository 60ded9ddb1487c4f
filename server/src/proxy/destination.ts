/**
 * Where a request goes: a base that somebody chose, and behind it what the caller asked for below `/proxy`.
 *
 * What comes out is one URL object, and nothing after it reads a text again: two readers of a text may see
 * two places. Whether anything may be sent there is for the egress gateway to say.
 *
 * Source: interface.md, Proxy.
 */
import { isUnambiguous } from '../base/absolute-url.ts'
import { PROXY_URL_CHARS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'

/** Reads a base. Throws `header_invalid`, as it comes in the header BT-PROXY-URL. */
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
 * Returns the URL that `base` and `requestTarget` name together. `requestTarget` is empty or begins with `/` or `?`.
 *
 * A single slash means as little as none. Slashes at the end of the base's path are taken away, the path is
 * added as it is, and the query comes behind that of the base. Throws `path_invalid` for what would lead
 * out of the base, however it is written, so that a base is also a bound.
 */
export function joinDestination(base: URL, requestTarget: string): URL {
  // The router takes a `#` for the end of the path: behind it would stand another name than the base's last.
  if (requestTarget.startsWith('#')) throw new ServiceError('path_invalid')
  const at = requestTarget.indexOf('?')
  const path = at < 0 ? requestTarget : requestTarget.slice(0, at)
  const query = at < 0 ? '' : requestTarget.slice(at + 1)
  if (climbs(path)) throw new ServiceError('path_invalid')

  const joined = new URL(base)
  const root = base.pathname.replace(/\/+$/, '')
  joined.pathname = root + (path === '/' ? '' : encoded(path))
  // Most have none, and to set it is to parse all of it once more.
  if (query !== '' || joined.href.includes('?')) {
    joined.search = [base.search.slice(1), encoded(query)].filter((it) => it !== '').join('&')
  }
  return joined
}

/**
 * Whether a segment of `path` is a step to itself or up, also for a reader who decodes it first, however often. What is encoded
 * more than ENCODINGS_MAX times may be anything.
 */
function climbs(path: string): boolean {
  let read = path
  for (let round = 0, last = ''; read !== last; round++) {
    if (round > ENCODINGS_MAX) return true
    last = read
    read = read.replaceAll(/%([0-7][0-9a-f])/gi, (_escape, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
  }
  // Some servers take what nobody sees away, and some what follows a semicolon for a parameter of the segment.
  const segments = read.replaceAll(/[\0-\x20\x7f]/g, '').split(/[/\\]/)
  return path.includes('\\') || segments.some((it) => /^\.\.?(?:[;?#].*)?$/.test(it))
}

/** Nobody encodes in earnest as often; and each time a long path is gone through anew. */
const ENCODINGS_MAX = 8

/** Bytes beyond ASCII, which come in as one character each, as what they are and not as that character. */
function encoded(text: string): string {
  return text.replaceAll(
    /[\u0080-\uffff]/g,
    (it) => `%${it.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
}

function invalid(message: string): ServiceError {
  return new ServiceError('header_invalid', { 'BT-PROXY-URL': [message] })
}
