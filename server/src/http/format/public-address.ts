/**
 * The URL under which clients reach this service, for the URLs in its responses.
 *
 * The service itself speaks plain HTTP; TLS ends in the reverse proxy in front. So the scheme comes from a setting, or from
 * the headers of a proxy that the operator trusts. From any other peer those headers are ignored.
 */
import type { IncomingMessage } from 'node:http'
import { isLoopbackOrigin } from '../../base/origin.ts'
import { inBlock, parsePeerAddress, type IpBlock } from '../../base/ip-address.ts'
import { forwardedElementAt, type ForwardedElement } from './forwarded-header.ts'

export interface PublicAddress {
  /** Such as `https://vault.example`; null if it depends on the request. */
  readonly url: string | null
  /** The origin of card fields, if it is another. */
  readonly fieldsUrl: string | null
  /** The addresses of proxies whose `Forwarded` and `X-Forwarded-*` headers are believed. */
  readonly trustedProxies: readonly IpBlock[]
}

/**
 * Returns the absolute URL of `path`, or `path` alone if the request does not say which host it was sent to.
 *
 * Example: `https://vault.example/tokens/1` for `/tokens/1`, if a trusted proxy sent `X-Forwarded-Proto: https`.
 */
export function absoluteUrl(
  { headers, socket }: IncomingMessage,
  { url, trustedProxies }: PublicAddress,
  path: string,
): string {
  if (url !== null) return url + path
  const trusted = isTrusted(socket.remoteAddress, trustedProxies)
  const forwarded = trusted ? readForwarded(headers) : {}
  const host = forwarded.host ?? headers.host
  return host === undefined ? path : `${forwarded.proto ?? 'http'}://${host}${path}`
}

/**
 * Whether `origin` is that of pages this service serves. Without a setting, the `Host` of a request says it only on this machine: an
 * attacker's page can have its own name resolved to the address of this service.
 */
export function isOwnOrigin(
  origin: string,
  { headers }: Pick<IncomingMessage, 'headers'>,
  { url, fieldsUrl }: Pick<PublicAddress, 'url' | 'fieldsUrl'>,
): boolean {
  if (origin === url || origin === fieldsUrl) return true
  return url === null && origin === `http://${headers.host}` && isLoopbackOrigin(origin)
}

/** What the client's own connection was, as the proxy nearest to it saw it. */
interface Forwarded {
  readonly proto?: string | undefined
  readonly host?: string | undefined
}

/** Reads `Forwarded` (RFC 7239), or else its older relatives. In a list, the first element is about the client. */
function readForwarded(headers: IncomingMessage['headers']): Forwarded {
  const named = forwardedElementAt(headers.forwarded ?? '', 0)?.element ?? NO_ELEMENT
  const proto = named.get('proto') ?? firstOf(headers['x-forwarded-proto'])
  const host = named.get('host') ?? firstOf(headers['x-forwarded-host'])
  return {
    proto: proto !== undefined && /^https?$/i.test(proto) ? proto.toLowerCase() : undefined,
    host: host !== undefined && AUTHORITY.test(host) ? host : undefined,
  }
}

const NO_ELEMENT: ForwardedElement = new Map()

const AUTHORITY = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

function firstOf(list: string | string[] | undefined): string | undefined {
  return list?.toString().split(',', 1)[0]!.trim()
}

function isTrusted(address: string | undefined, blocks: readonly IpBlock[]): boolean {
  if (address === undefined || blocks.length === 0) return false
  const parsed = parsePeerAddress(address)
  return parsed !== null && blocks.some((it) => inBlock(parsed, it))
}
