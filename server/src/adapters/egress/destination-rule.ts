import { coversAddress, coversHost, type Destination } from '../../base/destination.ts'
import { inBlock, parseIpAddress, type IpAddress } from '../../base/ip-address.ts'
import { EgressRefusal, type EgressRule, type Route } from '../../ports/egress.ts'
import { innerAddress, specialPurpose } from './address-rule.ts'
import type { EgressEndpoint } from './egress-endpoint.ts'

/** An address that a name has, with what is known of it. */
export interface KnownAddress {
  readonly text: string
  readonly ip: IpAddress
  /** What it belongs to, or null when it is public. */
  readonly special: string | null
}

/** Returns null for what is no address that can be dialled, one with a zone id for example. */
export function knownAddress(text: string): KnownAddress | null {
  const ip = parseIpAddress(text)
  return ip === null ? null : addressKnownAs(text, ip)
}

/** As knownAddress(), of one that was read already. */
export function addressKnownAs(text: string, ip: IpAddress): KnownAddress {
  return { text, ip, special: specialPurpose(ip) }
}

/**
 * What may be reached, as the operator has it: public addresses by name over TLS, and beside them only what is
 * allowed in so many words.
 *
 * Our own ports on this machine are reached by no block and no name, only by an entry that names the port: whoever
 * allows the machine itself means what runs beside the vault, not the vault.
 */
export class DestinationRule {
  readonly #allowed: readonly Destination[]
  readonly #hasBlocks: boolean
  readonly #ownAddresses: () => readonly string[]
  readonly #ownPorts = new Set<number>()

  /** `ownAddresses` are those of this machine, asked for only when it matters. */
  constructor(allowed: readonly Destination[], ownAddresses: () => readonly string[]) {
    this.#allowed = allowed
    this.#hasBlocks = allowed.some((it) => it.host.kind === 'block')
    this.#ownAddresses = ownAddresses
  }

  /** From now on `port` on this machine is our own. */
  own(port: number): void {
    this.#ownPorts.add(port)
  }

  /** Throws EgressRefusal for what no address can make right, so that its name need not be asked for. */
  beforeLookup(endpoint: EgressEndpoint): void {
    if (endpoint.literal !== null && this.#entryFor(endpoint, endpoint.literal) === null) {
      throw new EgressRefusal('literal')
    }
    if (!endpoint.secure && !this.#hasBlocks && this.#entryFor(endpoint, null) === null) {
      throw new EgressRefusal('scheme')
    }
  }

  /**
   * Returns by which rule all of `addresses` may be reached as `endpoint`. Throws EgressRefusal when one of them
   * may not: which of them is dialled is nothing that the name should decide.
   */
  judge(endpoint: EgressEndpoint, addresses: readonly KnownAddress[]): Route['rule'] {
    let needed: Destination | null = null
    for (const address of addresses) {
      const entry = this.#entryNeeded(endpoint, address)
      if (typeof entry === 'string') throw new EgressRefusal(entry)
      needed ??= entry
    }
    return needed === null ? { name: 'public' } : { name: 'allowed', entry: needed.text }
  }

  /** Whether this one address may be dialled: judge(), once more, where the socket is made. */
  permits(endpoint: EgressEndpoint, address: string): boolean {
    const known = knownAddress(address)
    return known !== null && typeof this.#entryNeeded(endpoint, known) !== 'string'
  }

  /** Null when none is needed, and the rule that refuses when one is and there is none. */
  #entryNeeded(
    endpoint: EgressEndpoint,
    { ip, special }: KnownAddress,
  ): Destination | null | EgressRule {
    if (this.#ownPorts.has(endpoint.port) && this.#isOurs(ip)) {
      return this.#entryFor(endpoint, ip, (it) => it.port !== null) ?? 'address'
    }
    if (special === null && endpoint.secure && endpoint.literal === null) return null
    return this.#entryFor(endpoint, ip) ?? (special === null ? 'scheme' : 'address')
  }

  #entryFor(
    endpoint: EgressEndpoint,
    ip: IpAddress | null,
    fits: (it: Destination) => boolean = () => true,
  ): Destination | null {
    const { host, literal, port } = endpoint
    for (const it of this.#allowed) {
      if (!fits(it)) continue
      // By its text an address is in a block, whatever it carries along: it is judged as an address alone.
      if (literal === null && coversHost(it, host, port)) return it
      if (ip !== null && coversWhole(it, ip, port)) return it
    }
    return null
  }

  /** Also in the form of IPv6 in which resolvers and systems write an address of IPv4. */
  #isOurs(ip: IpAddress): boolean {
    if (LOOPBACK.has(specialPurpose(ip) ?? '')) return true
    const inner = innerAddress(ip)
    return this.#ownAddresses().some((text) => {
      const own = parseIpAddress(text)
      return own !== null && (isSame(own, ip) || (inner !== null && isSame(own, inner)))
    })
  }
}

function isSame(one: IpAddress, other: IpAddress): boolean {
  return one.version === other.version && one.value === other.value
}

/** What reaches this machine from within, whichever of its addresses we listen on. */
const LOOPBACK: ReadonlySet<string> = new Set([
  'Loopback',
  'Loopback Address',
  'This network',
  'Unspecified Address',
])

/**
 * A block of IPv6 does not cover what an address in it carries: whoever allows the addresses of a translator
 * means the public ones behind it.
 */
function coversWhole(entry: Destination, ip: IpAddress, port: number): boolean {
  if (!coversAddress(entry, ip, port)) return false
  const inner = innerAddress(ip)
  if (inner === null || specialPurpose(inner) === null) return true
  return (
    entry.host.kind === 'block' && entry.host.block.bits === 128 && inBlock(ip, entry.host.block)
  )
}
