/**
 * What lets a browser call from another origin.
 *
 * A key is what grants access, not an origin; so every origin is allowed unless the operator names
 * some. Source: interface.md, Browsers.
 */

const REQUEST_HEADERS = [
  'Authorization',
  'BT-API-KEY',
  'BT-CLIENT-USER-AGENT',
  'BT-IDEMPOTENCY-KEY',
  'BT-TRACE-ID',
  'BT-TRANSACTION-ID',
  'Content-Type',
].join(', ')

const STREAMING_REQUEST_HEADERS = [
  'BT-PROXY-CONNECTION',
  'BT-PROXY-DRY-RUN',
  'BT-PROXY-KEEP-ALIVE',
  'BT-PROXY-KEY',
  'BT-PROXY-URL',
].join(', ')

const EXPOSED_HEADERS =
  'BT-TRACE-ID, BT-PROXY-DESTINATION-STATUS, BT-PROXY-EXPRESSIONS, Location, Retry-After'

const PREFLIGHT_SECONDS = 3600

export function corsHeaders(
  allowed: '*' | readonly string[],
  origin: string,
): Record<string, string> {
  if (allowed === '*') {
    return {
      'access-control-allow-origin': '*',
      'access-control-expose-headers': EXPOSED_HEADERS,
    }
  }
  if (!allowed.includes(origin)) return { vary: 'Origin' }
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED_HEADERS,
    vary: 'Origin',
  }
}

/** Where requests are forwarded, a page may send what the destination wants, and read what it answers. */
export function streamingPreflightHeaders(methods: readonly string[]): Record<string, string> {
  return {
    ...preflightHeaders(methods),
    // The star covers everything but Authorization; old browsers go by the names alone.
    'access-control-allow-headers': `${REQUEST_HEADERS}, ${STREAMING_REQUEST_HEADERS}, *`,
  }
}

/** As corsHeaders(), of an answer whose headers are another's: a page may read them all. */
export function streamingCorsHeaders(
  allowed: '*' | readonly string[],
  origin: string,
): Record<string, string> {
  const headers = corsHeaders(allowed, origin)
  if (headers['access-control-expose-headers'] === undefined) return headers
  return { ...headers, 'access-control-expose-headers': `${EXPOSED_HEADERS}, *` }
}

export function preflightHeaders(methods: readonly string[]): Record<string, string> {
  return {
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  }
}
