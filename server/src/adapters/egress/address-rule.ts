/**
 * Lists the addresses that are not public, under their names in the registries.
 *
 * Sources: the IANA special-purpose address registries for IPv4 and IPv6, with each block's name there, including
 * blocks marked as globally reachable, because no API is served from them; the RFCs of multicast, site-local and
 * reserved space; and the public addresses at which cloud platforms answer. Of IPv6, only 2000::/3 has been allocated.
 *
 * An IPv4 address inside an IPv6 one is unpacked and judged again, because a translator on the path unpacks it too.
 */
import { inBlock, parseIpBlock, type IpAddress, type IpBlock } from '../../base/ip-address.ts'

/** Returns the name of the block that `address` belongs to, or null for an ordinary public address. */
export function specialPurpose(address: IpAddress): string | null {
  const inner = innerAddress(address)
  const insideOut = inner === null ? null : specialPurpose(inner)
  if (insideOut !== null) return insideOut
  for (const [block, name] of address.version === 4 ? IPV4 : IPV6) {
    if (inBlock(address, block)) return name
  }
  return address.version === 6 && !inBlock(address, GLOBAL_UNICAST) ? 'Unassigned' : null
}

/** Returns the IPv4 address embedded in `address` for a translator or tunnel, or null. */
export function innerAddress(address: IpAddress): IpAddress | null {
  if (address.version === 4) return null
  for (const { block, shift, inverted } of CARRIERS) {
    if (inBlock(address, block)) return ipv4(address.value >> shift, inverted)
  }
  // ISATAP may appear under any prefix. RFC 5214, section 6.1.
  const interfaceId = (address.value >> 32n) & 0xffff_ffffn
  return interfaceId === 0x5efen || interfaceId === 0x0200_5efen ? ipv4(address.value) : null
}

function ipv4(value: bigint, inverted = false): IpAddress {
  const bits = BigInt.asUintN(32, value)
  return { version: 4, value: inverted ? bits ^ 0xffff_ffffn : bits }
}

/** All blocks, for tests that compare the table with an independent implementation. */
export const SPECIAL_BLOCKS: readonly (readonly [cidr: string, name: string])[] = [
  ['0.0.0.0/8', 'This network'],
  ['10.0.0.0/8', 'Private-Use'],
  ['100.64.0.0/10', 'Shared Address Space'],
  ['127.0.0.0/8', 'Loopback'],
  ['169.254.0.0/16', 'Link Local'],
  ['172.16.0.0/12', 'Private-Use'],
  ['192.0.0.0/24', 'IETF Protocol Assignments'],
  ['192.0.2.0/24', 'Documentation (TEST-NET-1)'],
  ['192.31.196.0/24', 'AS112-v4'],
  ['192.52.193.0/24', 'AMT'],
  ['192.88.99.0/24', 'Deprecated (6to4 Relay Anycast)'],
  ['192.168.0.0/16', 'Private-Use'],
  ['192.175.48.0/24', 'Direct Delegation AS112 Service'],
  ['198.18.0.0/15', 'Benchmarking'],
  ['198.51.100.0/24', 'Documentation (TEST-NET-2)'],
  ['203.0.113.0/24', 'Documentation (TEST-NET-3)'],
  ['224.0.0.0/4', 'Multicast'],
  ['240.0.0.0/4', 'Reserved'],
  ['255.255.255.255/32', 'Limited Broadcast'],
  // Azure's platform address inside every virtual network: DNS, health probes, machine keys.
  ['168.63.129.16/32', 'Cloud platform'],

  ['::/128', 'Unspecified Address'],
  ['::1/128', 'Loopback Address'],
  ['::/96', 'IPv4-compatible Address'],
  ['::ffff:0:0/96', 'IPv4-mapped Address'],
  ['::ffff:0:0:0/96', 'IPv4-translated Address'],
  ['64:ff9b::/96', 'IPv4-IPv6 Translat.'],
  ['64:ff9b:1::/48', 'IPv4-IPv6 Translat.'],
  ['100::/64', 'Discard-Only Address Block'],
  ['100:0:0:1::/64', 'Dummy IPv6 Prefix'],
  ['2001::/32', 'TEREDO'],
  ['2001:2::/48', 'Benchmarking'],
  ['2001:3::/32', 'AMT'],
  ['2001:4:112::/48', 'AS112-v6'],
  ['2001:10::/28', 'Deprecated (previously ORCHID)'],
  ['2001:20::/28', 'ORCHIDv2'],
  ['2001:30::/28', 'Drone Remote ID Protocol Entity Tags (DETs) Prefix'],
  ['2001::/23', 'IETF Protocol Assignments'],
  ['2001:db8::/32', 'Documentation'],
  ['2002::/16', '6to4'],
  ['2620:4f:8000::/48', 'Direct Delegation AS112 Service'],
  ['3fff::/20', 'Documentation'],
  ['5f00::/16', 'Segment Routing (SRv6) SIDs'],
  ['fc00::/7', 'Unique-Local'],
  ['fe80::/10', 'Link-Local Unicast'],
  ['fec0::/10', 'Site-Local Unicast'],
  ['ff00::/8', 'Multicast'],
]

const NAMED = SPECIAL_BLOCKS.map(([cidr, name]) => [blockOf(cidr), name] as const)
const IPV4 = NAMED.filter(([block]) => block.version === 4)
const IPV6 = NAMED.filter(([block]) => block.version === 6)
const GLOBAL_UNICAST = blockOf('2000::/3')

/** Where IPv6 addresses embed IPv4: the offset from the end, and whether the bits are inverted. */
const CARRIERS: readonly { block: IpBlock; shift: bigint; inverted?: boolean }[] = [
  { block: blockOf('::/96'), shift: 0n },
  { block: blockOf('::ffff:0:0/96'), shift: 0n },
  { block: blockOf('::ffff:0:0:0/96'), shift: 0n },
  { block: blockOf('64:ff9b::/96'), shift: 0n },
  { block: blockOf('64:ff9b:1::/48'), shift: 0n },
  { block: blockOf('2002::/16'), shift: 80n },
  // Teredo: the client's address. RFC 4380, section 4.
  { block: blockOf('2001::/32'), shift: 0n, inverted: true },
]

function blockOf(cidr: string): IpBlock {
  const block = parseIpBlock(cidr)
  if (block === null) throw new Error(`Cannot read the block: ${cidr}`)
  return block
}
