/**
 * Lists of allowed destinations: hosts by name, or all names below one.
 *
 * Source: interface.md, Applications and Tenants. The egress gateway, `ports/egress.ts`, enforces a list.
 */
import type { InProcessCaller, Principal } from '../base/access.ts'
import { parseDestination } from '../base/destination.ts'
import type { StoredApplication } from '../ports/stored.ts'

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

/**
 * Returns the destinations that a tenant and all of `applications` allow, whose data or rights are used: whatever is sent for them
 * is held to this list. An application that is gone, null, allows none.
 */
export function allowedDestinations(
  { settings }: Pick<Principal, 'settings'>,
  applications: readonly (Pick<StoredApplication, 'destinations'> | null)[],
): readonly string[] | null {
  return applications
    .map((it) => (it === null ? [] : it.destinations))
    .reduce(commonDestinations, settings.destinations)
}

/**
 * Returns the intersection of two lists; null stands for a list of everything.
 *
 * Compares host by host instead of every pair: an intersection may be a hundred times longer than a list, and is intersected again.
 */
export function commonDestinations(
  some: readonly string[] | null,
  others: readonly string[] | null,
): readonly string[] | null {
  if (some === null) return others
  if (others === null) return some
  const [ours, theirs] = [portsByHost(some), portsByHost(others)]
  const common = new Map<string, ReadonlySet<string>>()
  for (const host of new Set([...ours.keys(), ...theirs.keys()])) {
    const ports = commonPorts(portsOf(host, ours), portsOf(host, theirs))
    if (ports.size > 0) common.set(host, ports)
  }
  return [...common].flatMap(([host, ports]) => {
    // A port that is common to all names above is not repeated for each of them.
    const above = hostsAbove(host).flatMap((it) => common.get(it) ?? [])
    const isRepeated = (port: string): boolean => above.some((it) => it.has('') || it.has(port))
    return [...ports].filter((it) => !isRepeated(it)).map((it) => host + it)
  })
}

type Ports = ReadonlySet<string>

/** Returns the ports of each host of a list, as split() has them. */
function portsByHost(list: readonly string[]): Map<string, Set<string>> {
  const byHost = new Map<string, Set<string>>()
  for (const { host, port } of list.map(split)) {
    const ports = byHost.get(host)
    if (ports === undefined) byHost.set(host, new Set([port]))
    else ports.add(port)
  }
  return byHost
}

/** Returns the ports that a list has for all of `host`: its own, and those of every star above it. */
function portsOf(host: string, byHost: ReadonlyMap<string, Ports>): Ports {
  const sets = [host, ...hostsAbove(host)].flatMap((it) => byHost.get(it) ?? [])
  return sets.length === 1 ? sets[0]! : new Set(sets.flatMap((it) => [...it]))
}

function commonPorts(some: Ports, others: Ports): Ports {
  if (some.has('')) return others.has('') ? EVERY_PORT : others
  return others.has('') ? some : some.intersection(others)
}

const EVERY_PORT: Ports = new Set([''])

/** Returns the stars that cover `host`, a name or a star itself. */
function hostsAbove(host: string): string[] {
  const above: string[] = []
  const name = host.startsWith('*.') ? host.slice(2) : host
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
    above.push(`*${name.slice(dot)}`)
  }
  return above
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
