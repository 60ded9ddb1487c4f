/**
 * The address of the client that sent a request, for limits: nothing is granted because of it.
 *
 * It is that of the connection, or, where a trusted proxy is at its other end, the address that the proxy saw. Each proxy appends to
 * `Forwarded` or `X-Forwarded-For`, so a client writes what it likes to the left, and the right end is the proxy's. From any other peer
 * the headers are ignored.
 */
import type { IncomingMessage } from 'node:http'
import { inBlock, parsePeerAddress, type IpAddress, type IpBlock } from '../../base/ip-address.ts'
import { FORWARDED_CHARS_MAX } from '../../base/limits.ts'
import { forwardedElementsOf } from './forwarded-header.ts'

/**
 * Returns the network of the client, as text to compare: its address for IPv4, the first 64 bits for IPv6, of which a client has the
 * rest to itself. Clients whose connection is gone, and says no address, are one network.
 */
export function clientNetworkOf(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  trustedProxies: readonly IpBlock[],
): string {
  const peer = parsePeerAddress(socket.remoteAddress ?? '')
  if (peer === null) return 'unknown'
  return networkOf(isIn(peer, trustedProxies) ? forwardedFrom(headers, peer, trustedProxies) : peer)
}

/** The prefix distinguishes version 4 from the first half of version 6. */
function networkOf({ version, value }: IpAddress): string {
  return version === 4 ? `4.${value.toString(36)}` : `6.${(value >> 64n).toString(36)}`
}

/**
 * Returns the client's address by the headers of a trusted `peer`.
 *
 * A proxy that writes one of the headers may pass the other one on as the client wrote it. So if they name two clients, neither counts,
 * and the address is the proxy's.
 */
function forwardedFrom(
  headers: IncomingMessage['headers'],
  peer: IpAddress,
  trusted: readonly IpBlock[],
): IpAddress {
  const named = headers.forwarded === undefined ? null : nodesOf(headers.forwarded)
  const list = headers['x-forwarded-for']?.toString()
  const listed = list === undefined ? null : isLong(list) ? [] : list.split(',')
  const byName = named && nearestUntrusted(named, peer, trusted)
  const byList = listed && nearestUntrusted(listed, peer, trusted)
  if (byName === null || byList === null) return byName ?? byList ?? peer
  return byName.version === byList.version && byName.value === byList.value ? byName : peer
}

/** A client can write much in front, and reading it takes time for each of its requests. Then the header names no address. */
function isLong(header: string): boolean {
  return header.length > FORWARDED_CHARS_MAX
}

/** Returns the nodes that the elements are `for`; none if the header is malformed. Null if its last element, the proxy's, names none. */
function nodesOf(forwarded: string): string[] | null {
  const elements = (isLong(forwarded) ? null : forwardedElementsOf(forwarded)) ?? []
  const nodes = elements.map((it) => it.get('for') ?? '')
  return nodes.at(-1) === '' ? null : nodes
}

/**
 * Returns the last address that is not a trusted proxy's; if all are, the first. An element without an address (`unknown`, an obfuscated
 * identifier, garbage) ends the search: then it is that of the proxy which wrote the element.
 */
function nearestUntrusted(
  nodes: readonly string[],
  peer: IpAddress,
  trusted: readonly IpBlock[],
): IpAddress {
  let nearest = peer
  for (const node of nodes.toReversed()) {
    const address = parseNode(node.trim())
    if (address === null) return nearest
    nearest = address
    if (!isIn(address, trusted)) return nearest
  }
  return nearest
}

/** Source: RFC 7239, section 6. In `X-Forwarded-For`, IPv6 is written without brackets. */
function parseNode(node: string): IpAddress | null {
  const [, bracketed, plain] = NODE.exec(node) ?? []
  return parsePeerAddress(bracketed ?? plain ?? node)
}

/** IPv6 in brackets or IPv4, with a port if there is one. */
const NODE = /^(?:\[([^\]]+)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/

function isIn(address: IpAddress, blocks: readonly IpBlock[]): boolean {
  return blocks.some((it) => inBlock(address, it))
}
