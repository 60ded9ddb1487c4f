import { narrowedTo } from '../access/destinations.ts'
import type { RequestContext, InProcessCaller, Principal } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import type { World } from '../ports/world.ts'
import { anonymousOf, findProxy, type FoundProxy } from './configured/find-proxy.ts'
import { joinDestination, parseBase } from './destination.ts'
import { parseProxyOptions, type ProxyOptions } from './reserved-headers.ts'

/** Where a request goes, and who said so. */
export interface ProxyTarget {
  readonly url: URL
  /** As far as the caller may know: what was configured for it may hold a password. */
  readonly shown: string
  /** Null when the caller said so itself. */
  readonly proxy: FoundProxy | null
}

/**
 * Finds out where a request goes: where the proxy leads that it names by a key, or else where its
 * BT-PROXY-URL does; and behind that, what was asked for below the operation's path.
 *
 * Throws `proxy_not_found`, also for one of another tenant, `query_invalid`, and what parseBase() and
 * joinDestination() throw.
 */
export async function resolveTarget(
  world: Pick<World, 'keyring' | 'store'>,
  { tenantId }: RequestContext,
  { url, key: inHeader }: Pick<ProxyOptions, 'url' | 'key'>,
  asked: string,
): Promise<ProxyTarget> {
  const { requestTarget, key: inQuery } = takeKey(asked)
  const key = inHeader ?? inQuery
  // Two readers could see two proxies in it.
  if (key !== (inQuery ?? key)) {
    throw new ServiceError('query_invalid', { 'bt-proxy-key': ['The header names another.'] })
  }
  if (key === undefined) {
    const joined = joinDestination(parseBase(url), requestTarget)
    return { url: joined, shown: joined.href, proxy: null }
  }
  const proxy = await findProxy(world, key)
  if (proxy === null || proxy.tenant.id !== tenantId) throw new ServiceError('proxy_not_found')
  const base = new URL(proxy.destinationUrl)
  const joined = joinDestination(base, requestTarget)
  return { url: joined, shown: `${base.origin}/[not shown]${requestTarget}`, proxy }
}

/**
 * Who calls without an API key: nobody with any right, by a proxy that asks for none; null where there is no
 * such proxy.
 */
export async function principalWithoutKey(
  world: Pick<World, 'keyring' | 'store'>,
  { requestTarget, headers, inProcessCaller }: Unkeyed,
): Promise<Principal | null> {
  const key = keyInHeader(headers) ?? takeKey(requestTarget).key
  if (key === undefined) return null
  const proxy = await findProxy(world, key)
  return proxy === null || proxy.requireAuth
    ? null
    : narrowedTo(anonymousOf(proxy), inProcessCaller)
}

/** A request without an API key. */
interface Unkeyed {
  readonly requestTarget: string
  readonly headers: readonly string[]
  readonly inProcessCaller: InProcessCaller | null
}

function keyInHeader(headers: readonly string[]): string | undefined {
  // The plan bears on other headers, of which nothing is asked here.
  return parseProxyOptions(headers, 'enterprise').key
}

/**
 * Takes the key of a proxy out of the query, where some callers can put it and nowhere else.
 *
 * Also whoever has no key at all has his query looked through, of thousands of items: so only an item with the right
 * name is parsed.
 */
export function takeKey(asked: string): { requestTarget: string; key: string | undefined } {
  const at = asked.indexOf('?')
  const query = asked.slice(at + 1)
  if (at < 0 || !KEY_ITEM.test(query)) return { requestTarget: asked, key: undefined }
  const items = query.split('&')
  const [named, ...more] = items.filter((it) => KEY_ITEM.test(it))
  if (more.length > 0)
    throw new ServiceError('query_invalid', { 'bt-proxy-key': ['Send it once.'] })
  const rest = items.filter((it) => it !== named).join('&')
  return {
    requestTarget: asked.slice(0, at) + (rest === '' ? '' : `?${rest}`),
    key: new URLSearchParams(named).get(KEY_NAME)!,
  }
}

const KEY_NAME = 'bt-proxy-key'

/** An item of that name, in a query or alone, as URLSearchParams reads it: percent-encoded, and behind a `?`. */
const KEY_ITEM = new RegExp(`(?:^|&)\\??${[...KEY_NAME].map(spellings).join('')}(?:[=&]|$)`)

function spellings(char: string): string {
  const code = char.charCodeAt(0).toString(16)
  return `(?:${char}|%${code.replaceAll(/[a-f]/g, (it) => `[${it}${it.toUpperCase()}]`)})`
}
