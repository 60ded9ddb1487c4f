import { narrowedTo } from '../access/destinations.ts'
import type { InProcessCaller, Principal } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import type { World } from '../ports/world.ts'
import { anonymousOf, findProxy, type FoundProxy } from './configured/find-proxy.ts'
import { joinDestination, parseBase } from './destination.ts'
import { parseProxyOptions, type ProxyOptions } from './reserved-headers.ts'

/** The destination of a request, and its source. */
export interface ProxyTarget {
  readonly url: URL
  /** The destination as far as the caller may know it: the configured one may hold a password. */
  readonly shown: string
  /** Null if the caller named the destination itself. */
  readonly proxy: FoundProxy | null
}

/**
 * Resolves the destination of a request: that of the proxy it names by a key, or else its BT-PROXY-URL; followed by the
 * path requested below the operation's path.
 *
 * Throws `proxy_not_found`, also for a proxy of another tenant, `query_invalid`, and what parseBase() and joinDestination()
 * throw.
 */
export async function resolveTarget(
  world: Pick<World, 'keyring' | 'store'>,
  { tenantId }: RequestContext,
  { url, key: inHeader }: Pick<ProxyOptions, 'url' | 'key'>,
  asked: string,
): Promise<ProxyTarget> {
  const { targetBelowPath, key: inQuery } = takeKey(asked)
  const key = inHeader ?? inQuery
  // Two readers could pick different proxies.
  if (key !== (inQuery ?? key)) {
    throw new ServiceError('query_invalid', { 'bt-proxy-key': ['The header names another.'] })
  }
  if (key === undefined) {
    const joined = joinDestination(parseBase(url), targetBelowPath)
    return { url: joined, shown: joined.href, proxy: null }
  }
  const proxy = await findProxy(world, key)
  if (proxy === null || proxy.tenant.id !== tenantId) throw new ServiceError('proxy_not_found')
  const base = new URL(proxy.destinationUrl)
  const joined = joinDestination(base, targetBelowPath)
  return { url: joined, shown: `${base.origin}/[not shown]${targetBelowPath}`, proxy }
}

/**
 * Returns the principal of a caller without an API key: one without permissions, for a proxy that requires no key; null if
 * there is no such proxy.
 */
export async function principalWithoutKey(
  world: Pick<World, 'keyring' | 'store'>,
  { targetBelowPath, headers, inProcessCaller }: Unkeyed,
): Promise<Principal | null> {
  const key = keyInHeader(headers) ?? takeKey(targetBelowPath).key
  if (key === undefined) return null
  const proxy = await findProxy(world, key)
  return proxy === null || proxy.requireAuth
    ? null
    : narrowedTo(anonymousOf(proxy), inProcessCaller)
}

/** A request without an API key. */
interface Unkeyed {
  readonly targetBelowPath: string
  readonly headers: readonly string[]
  readonly inProcessCaller: InProcessCaller | null
}

function keyInHeader(headers: readonly string[]): string | undefined {
  // The plan only affects other headers, which are not used here.
  return parseProxyOptions(headers, 'enterprise').key
}

/**
 * Removes the key of a proxy from the query, the only place where some callers can put it.
 *
 * Runs for unauthenticated callers too, on queries of thousands of items, so only items with the right name are parsed.
 */
export function takeKey(asked: string): { targetBelowPath: string; key: string | undefined } {
  const at = asked.indexOf('?')
  const query = asked.slice(at + 1)
  if (at < 0 || !KEY_ITEM.test(query)) return { targetBelowPath: asked, key: undefined }
  const items = query.split('&')
  const [named, ...more] = items.filter((it) => KEY_ITEM.test(it))
  if (more.length > 0)
    throw new ServiceError('query_invalid', { 'bt-proxy-key': ['Send it once.'] })
  const rest = items.filter((it) => it !== named).join('&')
  return {
    targetBelowPath: asked.slice(0, at) + (rest === '' ? '' : `?${rest}`),
    key: new URLSearchParams(named).get(KEY_NAME)!,
  }
}

const KEY_NAME = 'bt-proxy-key'

/** Matches an item of that name as URLSearchParams reads it, in a query or alone: percent-encoded, and after a `?`. */
const KEY_ITEM = new RegExp(`(?:^|&)\\??${[...KEY_NAME].map(spellings).join('')}(?:[=&]|$)`)

function spellings(char: string): string {
  const code = char.charCodeAt(0).toString(16)
  return `(?:${char}|%${code.replaceAll(/[a-f]/g, (it) => `[${it}${it.toUpperCase()}]`)})`
}
