import {
  inBlock,
  parseIpAddress,
  parseIpBlock,
  type IpAddress,
  type IpBlock,
} from './ip-address.ts'

/**
 * An allowed destination, as a person writes it: `api.example.com`, `*.example.com`, `localhost:9000`, `127.0.0.1`, `10.0.0.0/8`,
 * `[fd00::/8]:443`. Without a port it means every port.
 */
export interface Destination {
  /** As written. */
  readonly text: string
  readonly host: DestinationHost
  readonly port: number | null
}

export type DestinationHost =
  | { readonly kind: 'name'; readonly name: string }
  /** Every name below it, not the name itself; begins with a dot. */
  | { readonly kind: 'suffix'; readonly suffix: string }
  | { readonly kind: 'block'; readonly block: IpBlock }

/** Returns null if `text` is no destination. */
export function parseDestination(text: string): Destination | null {
  const { host: written, port } = splitPort(text)
  if (port === undefined) return null
  const host = parseHost(written)
  return host === null ? null : { text, host, port }
}

/** Whether `destination` names this host, a name without a final dot or the text of an address. */
export function coversHost(destination: Destination, name: string, port: number): boolean {
  if (destination.port !== null && destination.port !== port) return false
  const { host } = destination
  if (host.kind === 'name') return host.name === name
  if (host.kind === 'suffix') return name.endsWith(host.suffix) && name.length > host.suffix.length
  const address = parseIpAddress(name)
  return address !== null && inBlock(address, host.block)
}

/** Whether `destination` is a block that contains this address. */
export function coversAddress(destination: Destination, address: IpAddress, port: number): boolean {
  if (destination.port !== null && destination.port !== port) return false
  return destination.host.kind === 'block' && inBlock(address, destination.host.block)
}

/**
 * Whether `name`, in lower case and without a final dot, can be a host's: labels of letters, digits, hyphens and underscores.
 * URLs allow more, and resolvers treat the rest as they like.
 */
export function isHostName(name: string): boolean {
  return name.length <= 253 && HOST_NAME.test(name)
}

const HOST_NAME = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/

/** `port` is undefined if it is invalid. */
function splitPort(text: string): { host: string; port: number | null | undefined } {
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/.exec(text)
  if (bracketed !== null) return { host: bracketed[1]!, port: parsePort(bracketed[2]) }
  const [host, port, ...more] = text.split(':')
  // Text with several colons and no brackets is an IPv6 address without a port.
  return more.length > 0 ? { host: text, port: null } : { host: host!, port: parsePort(port) }
}

function parsePort(text: string | undefined): number | null | undefined {
  if (text === undefined) return null
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : Infinity
  return port <= 65_535 ? port : undefined
}

function parseHost(text: string): DestinationHost | null {
  const block = parseIpBlock(text)
  if (block !== null) return { kind: 'block', block }
  const name = text.toLowerCase().replace(/\.$/, '')
  const suffix = name.startsWith('*.') ? name.slice(1) : null
  if (!isHostName(suffix === null ? name : suffix.slice(1))) return null
  // URLs take a host that ends in a number for an IPv4 address, so this would be a misspelt one.
  if (/(?:^|\.)(?:\d+|0x[0-9a-f]*)$/.test(name)) return null
  return suffix === null ? { kind: 'name', name } : { kind: 'suffix', suffix }
}
