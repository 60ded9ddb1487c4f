import { coversAddress, coversHost, type Destination } from '../../base/destination.ts'
import { inBlock, parseIpAddress, type IpAddress } from '../../base/ip-address.ts'
import { EgressRefusal, type EgressRule, type Route } from '../../ports/egress.ts'
import { innerAddress, specialPurpose } from './address-rule.ts'
import type { EgressEndpoint } from './egress-endpoint.ts'

/** An address of a name, and its special purpose. */
export interface KnownAddress {
  readonly text: string
  readonly ip: IpAddress
  /** The special-purpose block it belongs to, or null when it is public. */
  readonly special: string | null
}

/** Returns null for text that is not an address to dial, such as one with a zone id. */
export function knownAddress(text: string): KnownAddress | null {
  const ip = parseIpAddress(text)
  return ip === null ? null : addressKnownAs(text, ip)
}

/** Like knownAddress(), for an address that is parsed already. */
export function addressKnownAs(text: string, ip: IpAddress): KnownAddress {
  return { text, ip, special: specialPurpose(ip) }
}

/**
 * The rule against SSRF: allows public addresses by name over TLS, and everything else only if the operator's allowlist
 * names it.
 *
 * The service's own ports on this machine need an entry with that port; a block or a bare name is not enough. Operators
 * who allow the machine mean its other programs, not the vault.
 */
export class DestinationRule {
  readonly #allowed: readonly Destination[]
  readonly #hasBlocks: boolean
  readonly #ownAddresses: () => readonly string[]
  readonly #ownPorts = new Set<number>()

  /** `ownAddresses` returns this machine's addresses; it is called only when they matter. */
  constructor(allowed: readonly Destination[], ownAddresses: () => readonly string[]) {
    this.#allowed = allowed
    this.#hasBlocks = allowed.some((it) => it.host.kind === 'block')
    this.#ownAddresses = ownAddresses
  }

  /** Declares `port` on this machine as the service's own. */
  own(port: number): void {
    this.#ownPorts.add(port)
  }

  /** Throws EgressRefusal for endpoints that no address could make acceptable, which saves the lookup. */
  beforeLookup(endpoint: EgressEndpoint): void {
    if (endpoint.literal !== null && this.#entryFor(endpoint, endpoint.literal) === null) {
      throw new EgressRefusal('literal')
    }
    if (!endpoint.secure && !this.#hasBlocks && this.#entryFor(endpoint, null) === null) {
      throw new EgressRefusal('scheme')
    }
  }

  /**
   * Returns the rule by which `endpoint` may be reached at all of `addresses`. Throws EgressRefusal if one is
   * forbidden: the owner of the name must not be able to choose which one is dialled.
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

  /** Applies judge() to a single address, right before the socket is made. */
  permits(endpoint: EgressEndpoint, address: string): boolean {
    const known = knownAddress(address)
    return known !== null && typeof this.#entryNeeded(endpoint, known) !== 'string'
  }

  /** Returns the allowlist entry that permits the address, null if none is needed, or the rule that refuses it. */
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
      // A literal address must not match as text, or an IPv4 address inside it would go unchecked.
      if (literal === null && coversHost(it, host, port)) return it
      if (ip !== null && coversWhole(it, ip, port)) return it
    }
    return null
  }

  /** Also recognizes the IPv4-mapped form that resolvers and systems use. */
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

/** Blocks that reach this machine itself, whatever address we listen on. */
const LOOPBACK: ReadonlySet<string> = new Set([
  'Loopback',
  'Loopback Address',
  'This network',
  'Unspecified Address',
])

/**
 * An IPv6 block does not cover special IPv4 addresses embedded in it: operators who allow a translator's prefix mean
 * the public addresses it leads to.
 */
function coversWhole(entry: Destination, ip: IpAddress, port: number): boolean {
  if (!coversAddress(entry, ip, port)) return false
  const inner = innerAddress(ip)
  if (inner === null || specialPurpose(inner) === null) return true
  return (
    entry.host.kind === 'block' && entry.host.block.bits === 128 && inBlock(ip, entry.host.block)
  )
}
