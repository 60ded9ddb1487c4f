/** Origins of web pages, such as `https://shop.example`. Source: html.spec.whatwg.org, "Origin". */
import { isHostName } from './destination.ts'
import { parseOrigin } from './setting-values.ts'

/** The form of an origin whose pages may use a key, for a message, after "must be". */
export const ORIGIN_FORM =
  'an origin such as https://shop.example, without a path; names of other letters in punycode, such as ' +
  'https://xn--bcher-kva.example; no IPv6 address; http only for localhost and 127.0.0.1'

/**
 * Returns an origin as browsers write it, in lower case and without a default port; null if it is invalid. A page that came
 * unencrypted may have been changed on its way, so plain HTTP is for pages of this machine only.
 */
export function writtenOrigin(text: string): string | null {
  const origin = parseOrigin(text)
  if (origin === undefined) return null
  const { hostname } = new URL(origin)
  // URLs allow stars, semicolons and commas in hosts, which mean something else in headers, and IPv6 addresses, which
  // frame-ancestors has no form for.
  if (!isHostName(hostname)) return null
  return origin.startsWith('https:') || isLoopbackOrigin(origin) ? origin : null
}

/** Whether only this machine can serve the pages of `origin`. Any other name may be resolved to this machine's address as well. */
export function isLoopbackOrigin(origin: string): boolean {
  return LOOPBACK.test(origin)
}

const LOOPBACK = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/
