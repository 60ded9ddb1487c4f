/**
 * Headers that a custom response may set only if the operator lists them: each acts for the whole origin of this service, or
 * takes its users elsewhere, and the author of the code is not its operator.
 */
import { isUnambiguous } from './absolute-url.ts'

/**
 * `location` only if it leads to another origin. `www-authenticate` makes browsers ask for a password on behalf of this host,
 * `set-cookie2` sets cookies for it, and `refresh` redirects like `location`.
 */
export const GUARDED_HEADERS = ['location', 'refresh', 'set-cookie2', 'www-authenticate'] as const

/** What the operator allows. */
export interface ResponseHeaderSettings {
  /** Names of guarded headers. */
  readonly allowed: readonly string[]
  /** The origin of this service, such as `https://vault.example`; null if it depends on the request. */
  readonly origin: string | null
}

/** Whether a header, by its name in lower case, may be sent with this value. */
export function mayBeSent(
  name: string,
  value: string,
  { allowed, origin }: ResponseHeaderSettings,
): boolean {
  if (!GUARDED.has(name) || allowed.includes(name)) return true
  return name === 'location' && staysAtOrigin(value, origin)
}

/** Whether every client reads `location` as a URL of `origin`, or of the origin that was asked. */
function staysAtOrigin(location: string, origin: string | null): boolean {
  // Browsers drop tabs and take backslashes for slashes; other clients do not.
  if (!/^[!-[\]-~]*$/.test(location)) return false
  if (isRelative(location)) return true
  const url = isUnambiguous(location) ? URL.parse(location) : null
  return url !== null && url.origin === origin && url.username === '' && url.password === ''
}

/** Without a scheme, and without an authority. */
function isRelative(location: string): boolean {
  return /^[^:/?#]*(?:[/?#]|$)/.test(location) && !location.startsWith('//')
}

const GUARDED: ReadonlySet<string> = new Set(GUARDED_HEADERS)
