import { isIPv6 } from 'node:net'

/** Begins every error message for the operator. */
export const ADDRESS = 'The address of the database, SYMBOLON_DATABASE_URL,'

/** Parameters of the address that are supported; any other is probably a mistake, and refused. */
const KNOWN = new Set([
  'sslmode',
  'sslrootcert',
  'host',
  'application_name',
  'target_session_attrs',
  'passfile',
])

export interface DatabaseUrl {
  readonly hosts: readonly HostAndPort[]
  readonly user: string | null
  readonly password: string | null
  readonly database: string
  readonly parameters: URLSearchParams
}

interface HostAndPort {
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  readonly port: number | null
}

/**
 * Parses the address of a database: `postgres://user:password@host:port/name`, with several hosts separated by commas, as
 * libpq has them. Throws an Error with a message for the operator, which never repeats the password.
 */
export function parseDatabaseUrl(url: string): DatabaseUrl {
  const { hosts, rest } = withoutHosts(url)
  const address = URL.parse(rest)
  if (address !== null && rest.includes('#')) {
    throw new Error(`${ADDRESS} has a # that must be written %23`)
  }
  if (address === null || !/^postgres(ql)?:$/.test(address.protocol)) throw malformed()
  const { searchParams: parameters } = address
  for (const it of parameters.keys()) {
    if (!KNOWN.has(it)) throw new Error(`${ADDRESS} must not have '${it}'`)
  }
  if (parameters.get('passfile') === '') {
    throw new Error(`${ADDRESS} must not have an empty passfile`)
  }
  const target = parameters.get('target_session_attrs') ?? 'read-write'
  if (target !== 'read-write' && target !== 'primary') {
    throw new Error(
      `${ADDRESS} must have target_session_attrs read-write or primary, not '${target}': no other server is used`,
    )
  }
  const database = decoded(address.pathname.slice(1))
  if (database === '') throw new Error(`${ADDRESS} must name a database`)
  return {
    hosts: hostsOf(hosts ?? [hostAndPort(address)], parameters),
    user: address.username === '' ? null : decoded(address.username),
    password: address.password === '' ? null : decoded(address.password),
    database,
    parameters,
  }
}

/** Returns the hosts of an address with several, and the address with none of them: the URL standard knows only one. */
function withoutHosts(url: string): {
  readonly hosts: readonly HostAndPort[] | null
  readonly rest: string
} {
  const [, scheme, authority, end] = /^([^:/]*:\/\/)([^/?#]*)(.*)$/s.exec(url) ?? []
  if (scheme === undefined) return { hosts: null, rest: url }
  // As in the URL standard, the user ends at the last @.
  const at = authority!.lastIndexOf('@') + 1
  const list = authority!.slice(at)
  if (!list.includes(',')) return { hosts: null, rest: url }
  return {
    hosts: list.split(',').map(parseHost),
    rest: `${scheme}${authority!.slice(0, at)}several${end}`,
  }
}

function parseHost(text: string): HostAndPort {
  const [, bracketed, name, digits] = /^(?:\[(.+)\]|([\w.-]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? name
  const port = digits === undefined ? null : Number(digits)
  const possible = bracketed === undefined || isIPv6(bracketed)
  if (host === undefined || !possible || port === 0 || (port !== null && port > 65_535)) {
    throw malformed()
  }
  return { host, port }
}

function hostAndPort({ hostname, port }: URL): HostAndPort {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return { host, port: port === '' ? null : Number(port) }
}

/** Returns the hosts that the parameter `host` names instead, each with the one port of the address, or those of the address. */
function hostsOf(
  hosts: readonly HostAndPort[],
  parameters: URLSearchParams,
): readonly HostAndPort[] {
  const instead = parameters.get('host')
  if (instead === null) return hosts
  if (hosts.length > 1) throw new Error(`${ADDRESS} must not have 'host' beside several hosts`)
  const names = instead.split(',')
  if (names.includes('')) throw malformed()
  return names.map((host) => ({ host, port: hosts[0]!.port }))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error(`${ADDRESS} has a % that must be written %25`)
  }
}

function malformed(): Error {
  return new Error(
    `${ADDRESS} must be postgres://user:password@host:port/name, or with several hosts host:port,host:port`,
  )
}
