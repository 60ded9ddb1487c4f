import { coversHost, isHostName, parseDestination } from '../../base/destination.ts'
import { parseIpAddress, type IpAddress } from '../../base/ip-address.ts'
import { EgressRefusal } from '../../ports/egress.ts'

/** The endpoint that a URL names: everything about it that decides where a connection goes. */
export interface EgressEndpoint {
  readonly secure: boolean
  /** In lower case and without a final dot; of an address, its canonical text without brackets. */
  readonly host: string
  /** Of a URL with an address in place of a name. */
  readonly literal: IpAddress | null
  readonly port: number
}

/** Throws EgressRefusal for what nothing is sent to, whoever allows it. */
export function endpointOf(url: URL): EgressEndpoint {
  const { protocol, hostname } = url
  const secure = protocol === 'https:'
  if (!secure && protocol !== 'http:') throw new EgressRefusal('scheme')
  if (url.username !== '' || url.password !== '') throw new EgressRefusal('credentials')
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  if (port === 0) throw new EgressRefusal('port')

  // The parser of URLs has folded every way to write an address into one: what is none now is a name.
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  const host = bare.endsWith('.') ? bare.slice(0, -1) : bare
  const literal = parseIpAddress(host)
  if (literal === null && !isHostName(host)) throw new EgressRefusal('host')
  return { secure, host, literal, port }
}

/** Host and port as they stand in a URL: the port only if it is not the scheme's own. */
export function authorityOf({ secure, host, literal, port }: EgressEndpoint): string {
  const written = literal?.version === 6 ? `[${host}]` : host
  return port === (secure ? 443 : 80) ? written : `${written}:${port}`
}

/** Whether `endpoint` is among these; what cannot be read among them stands for nothing. */
export function isListed({ host, port }: EgressEndpoint, listed: readonly string[]): boolean {
  return listed.some((it) => {
    const destination = parseDestination(it)
    return destination !== null && coversHost(destination, host, port)
  })
}
