/**
 * CORS headers, which let browsers call from another origin.
 *
 * A key grants access, an origin does not; so every origin is allowed unless the operator names some. Source: interface.md,
 * Browsers.
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

/** On streaming endpoints, a page may send any header the destination wants, and read every header of its response. */
export function streamingPreflightHeaders(methods: readonly string[]): Record<string, string> {
  return {
    ...preflightHeaders(methods),
    // The star covers everything but Authorization; old browsers only understand names.
    'access-control-allow-headers': `${REQUEST_HEADERS}, ${STREAMING_REQUEST_HEADERS}, *`,
  }
}

/** Like corsHeaders(), for a forwarded response: a page may read all of its headers. */
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
