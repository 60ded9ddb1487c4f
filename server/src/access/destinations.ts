/**
 * Lists of allowed destinations: hosts by name, or all names below one.
 *
 * Source: interface.md, Applications. The egress gateway, `ports/egress.ts`, enforces a list.
 */
import type { InProcessCaller, Principal } from '../base/access.ts'
import { parseDestination } from '../base/destination.ts'

/** The form of a destination, for a message, after "must be". */
export const DESTINATION_FORM =
  'a host name such as api.example.com, or *.example.com for all names below one; perhaps with a port'

/**
 * Returns a destination in canonical form, or null if it is invalid: lower case, without a trailing dot, other alphabets as they
 * are resolved. Without a port it stands for every port of the host.
 */
export function writtenDestination(text: string): string | null {
  const parts = PARTS.exec(text)
  if (parts === null) return null
  const [, below = '', name = '', port] = parts
  const url = URL.parse(`https://${name}/`)
  if (url === null) return null
  const host = url.hostname.replace(/\.$/, '')
  const written = below + host + (port === undefined ? '' : `:${Number(port)}`)
  return parseDestination(written) === null ? null : written
}

/** Returns the intersection of two lists; null stands for a list of everything. */
export function commonDestinations(
  some: readonly string[] | null,
  others: readonly string[] | null,
): readonly string[] | null {
  if (some === null) return others
  if (others === null) return some
  const common = some.flatMap((a) => others.flatMap((b) => narrower(a, b) ?? []))
  return [...new Set(common)]
}

/**
 * Limits a principal to the destinations of `inProcessCaller`: the code can also have the service send for it, so the same list
 * applies there.
 */
export function narrowedTo(
  principal: Principal,
  inProcessCaller: InProcessCaller | null,
): Principal {
  if (inProcessCaller === null || inProcessCaller.destinations === null) return principal
  const destinations = commonDestinations(principal.destinations, inProcessCaller.destinations)
  return { ...principal, destinations }
}

/** Whether a list covers the host and port of `url`; null covers everything. */
export function isListed(
  { hostname, port, protocol }: URL,
  list: readonly string[] | null,
): boolean {
  if (list === null) return true
  const endpoint = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
  return list.some((it) => narrower(endpoint, it) !== null)
}

/** Returns the destination that covers what both cover; null if that is nothing. */
function narrower(a: string, b: string): string | null {
  const [one, other] = [split(a), split(b)]
  const host = isWithin(one.host, other.host)
    ? one.host
    : isWithin(other.host, one.host)
      ? other.host
      : null
  const samePort = one.port === other.port || one.port === '' || other.port === ''
  return host === null || !samePort ? null : host + (one.port || other.port)
}

/** Whether a name, or all names below one, are among `others`. */
function isWithin(host: string, others: string): boolean {
  return host === others || (others.startsWith('*.') && host.endsWith(others.slice(1)))
}

/** Splits off the port, with its colon; empty for every port. */
function split(entry: string): { readonly host: string; readonly port: string } {
  const at = entry.search(/:\d+$/)
  return at < 0 ? { host: entry, port: '' } : { host: entry.slice(0, at), port: entry.slice(at) }
}

const PARTS = /^(\*\.)?([^\s:/?#@%\\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/
