/**
 * What lets a browser call from another origin.
 *
 * A key is what opens the door, not an origin; so every origin is allowed unless the operator names
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

const EXPOSED_HEADERS = 'BT-TRACE-ID, BT-PROXY-DESTINATION-STATUS, Location, Retry-After'

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

export function preflightHeaders(methods: readonly string[]): Record<string, string> {
  return {
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  }
}
