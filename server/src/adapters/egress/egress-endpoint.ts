import { coversHost, isHostName, parseDestination } from '../../base/destination.ts'
import { parseIpAddress, type IpAddress } from '../../base/ip-address.ts'
import { EgressRefusal } from '../../ports/egress.ts'

/** The parts of a URL that decide where a connection goes. */
export interface EgressEndpoint {
  readonly secure: boolean
  /** Lowercase, without a final dot; for an address, its canonical text without brackets. */
  readonly host: string
  /** The address, if the URL has one instead of a name. */
  readonly literal: IpAddress | null
  readonly port: number
}

/** Throws EgressRefusal for URLs that no allowlist can permit. */
export function endpointOf(url: URL): EgressEndpoint {
  const { protocol, hostname } = url
  const secure = protocol === 'https:'
  if (!secure && protocol !== 'http:') throw new EgressRefusal('scheme')
  if (url.username !== '' || url.password !== '') throw new EgressRefusal('credentials')
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  if (port === 0) throw new EgressRefusal('port')

  // The URL parser has normalized every notation of an address: anything that does not parse as one is a name.
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  const host = bare.endsWith('.') ? bare.slice(0, -1) : bare
  const literal = parseIpAddress(host)
  if (literal === null && !isHostName(host)) throw new EgressRefusal('host')
  return { secure, host, literal, port }
}

/** Returns host and port as in a URL: the port only if it is not the scheme's default. */
export function authorityOf({ secure, host, literal, port }: EgressEndpoint): string {
  const written = literal?.version === 6 ? `[${host}]` : host
  return port === (secure ? 443 : 80) ? written : `${written}:${port}`
}

/** Whether `endpoint` is in the list; unreadable items match nothing. */
export function isAllowedDestination(
  { host, port }: EgressEndpoint,
  allowedDestinations: readonly string[],
): boolean {
  return allowedDestinations.some((it) => {
    const destination = parseDestination(it)
    return destination !== null && coversHost(destination, host, port)
  })
}
