/**
 * IP addresses and blocks, as numbers: compared by value, however they were written.
 *
 * Only the forms that resolvers and parsed URLs produce are accepted: no octal, hexadecimal or short forms of IPv4, and no zone
 * ids.
 */

export interface IpAddress {
  readonly version: 4 | 6
  readonly value: bigint
}

export interface IpBlock {
  readonly version: 4 | 6
  /** The first and the last address in it. */
  readonly first: bigint
  readonly last: bigint
  /** How many leading bits all its addresses share. */
  readonly bits: number
}

/** Returns null if `text` is no address. Source: RFC 4291, section 2.2; IPv4 in four decimals. */
export function parseIpAddress(text: string): IpAddress | null {
  if (text.includes(':')) {
    const value = parseIpv6(text)
    return value === null ? null : { version: 6, value }
  }
  const value = parseIpv4(text)
  return value === null ? null : { version: 4, value }
}

/**
 * Parses the address at the other end of a connection. IPv4 written as IPv6, as a socket for both families writes it, is IPv4; the zone
 * of a link-local address is left out.
 */
export function parsePeerAddress(text: string): IpAddress | null {
  const address = parseIpAddress(text.replace(/%.*$/, ''))
  if (address === null || address.version === 4 || address.value >> 32n !== 0xffffn) return address
  return { version: 4, value: address.value & 0xffff_ffffn }
}

/**
 * Parses `10.0.0.0/8`; a single address is a block of one. Returns null for anything else, and for a block that is not written
 * with its first address: the author of `10.1.2.3/8` may have meant a much smaller one.
 */
export function parseIpBlock(text: string): IpBlock | null {
  const [written, length, ...more] = text.split('/')
  const address = parseIpAddress(written!)
  if (address === null || more.length > 0) return null
  const { version, value } = address
  const width = widthOf(version)
  if (length === undefined) return { version, first: value, last: value, bits: width }
  const bits = /^(?:0|[1-9]\d{0,2})$/.test(length) ? Number(length) : Infinity
  if (bits > width || BigInt.asUintN(width - bits, value) !== 0n) return null
  return { version, first: value, last: value | BigInt.asUintN(width - bits, -1n), bits }
}

export function inBlock(address: IpAddress, block: IpBlock): boolean {
  const { version, value } = address
  return version === block.version && block.first <= value && value <= block.last
}

function widthOf(version: 4 | 6): number {
  return version === 4 ? 32 : 128
}

function parseIpv4(text: string): bigint | null {
  const parts = text.split('.')
  if (parts.length !== 4) return null
  let value = 0n
  for (const part of parts) {
    if (!/^(?:0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return null
    value = (value << 8n) | BigInt(part)
  }
  return value
}

function parseIpv6(text: string): bigint | null {
  const halves = text.split('::')
  if (halves.length > 2) return null
  const head = groupsOf(halves[0]!, halves.length === 1)
  const tail = groupsOf(halves[1] ?? '', true)
  if (head === null || tail === null) return null
  const missing = 8 - head.length - tail.length
  // A double colon stands for at least one group; without it, no group may be missing.
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null
  const groups = [...head, ...Array.from({ length: missing }, () => 0n), ...tail]
  return groups.reduce((value, group) => (value << 16n) | group, 0n)
}

/** The last two groups may be an IPv4 address, at the end of the text. */
function groupsOf(text: string, atEnd: boolean): bigint[] | null {
  if (text === '') return []
  const parts = text.split(':')
  const groups: bigint[] = []
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(BigInt(`0x${part}`))
      continue
    }
    const inner = atEnd && index === parts.length - 1 ? parseIpv4(part) : null
    if (inner === null) return null
    groups.push(inner >> 16n, inner & 0xffffn)
  }
  return groups
}
