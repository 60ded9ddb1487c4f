import { commit } from '../request/commit.ts'
import { isListed } from '../access/destinations.ts'
import { refusalOfEgress } from '../request/egress-refusals.ts'
import type { RequestContext } from '../request/context.ts'
import { hostOf } from '../base/absolute-url.ts'
import { ServiceError } from '../base/service-error.ts'
import { ok, type Answer } from '../request/response.ts'
import type { StreamingRequest } from '../request/streaming.ts'
import type { TokenSettings } from '../tokens/token-settings.ts'
import {
  EgressFailure,
  EgressRefusal,
  senderOf,
  type OutboundRequest,
  type Route,
  type Sender,
} from '../ports/egress.ts'
import type { World } from '../ports/world.ts'
import { findBodyExpressions } from './bodies/body-expressions.ts'
import { authorizeProxyInvocation, isAnonymous } from './configured/authorize-proxy-invocation.ts'
import { detokenizeBody, findReferenced, readReferenced } from './detokenize-body.ts'
import { asDryRun, describeDryRun, markDryRun } from './dry-run.ts'
import { exchange } from './exchange.ts'
import type { ProxySettings } from './proxy-settings.ts'
import { bufferBody, type OutboundBody } from './request-body.ts'
import { outboundHeaders } from './outbound-headers.ts'
import { parseProxyOptions } from './reserved-headers.ts'
import { resolveTarget } from './proxy-target.ts'

export type ForwardingWorld = Pick<World, 'clock' | 'random' | 'keyring' | 'store' | 'egress'>

/**
 * Forwards a request to its destination, with the expressions in its body replaced by what the caller may use of the
 * tokens, and streams the destination's response back.
 *
 * All checks happen before anything is sent, and every decision is in the audit log by then, with the destination. For a
 * caller without an API key expressions are plain text. A dry run sends nothing and describes what it would have sent.
 *
 * Throws what the pure functions it calls throw, `permission_missing`, and what refusalOfEgress() returns.
 * Source: interface.md, Proxy.
 */
export async function forwardRequest(
  world: ForwardingWorld,
  context: RequestContext,
  incoming: StreamingRequest,
  { timeoutMs, privacyShown }: ProxySettings & Pick<TokenSettings, 'privacyShown'>,
): Promise<Answer | undefined> {
  const { method } = incoming
  const options = parseProxyOptions(incoming.headers, context.plan)
  const { headers, accepted } = outboundHeaders(incoming.headers, options, context.traceId)
  const resolve = () => resolveTarget(world, context, options, incoming.targetBelowPath)
  const { url, shown, proxy } = await resolve()
  const destination = hostOf(url)
  const anonymous = proxy !== null && isAnonymous(context, proxy)
  // A dry run reveals the destination, which anonymous callers may not know.
  if (anonymous && options.dryRun) throw new ServiceError('key_missing')
  const authorizeInvocation = (): void => {
    authorizeProxyInvocation(context, destination, proxy)
    if (options.dryRun) markDryRun(context, context.decisions.length - 1)
  }
  const admit = async (): Promise<Route> => {
    const sender = anonymous ? senderOf(context.tenantId, proxy.id) : senderOf(context.tenantId)
    const route = await vet(world, context, url, sender, authorizeInvocation)
    authorizeInvocation()
    return route
  }
  let route = await admit()

  const outbound = await bufferBody(incoming.body, incoming.headers, !anonymous)
  // The client may have held its body back. Nothing is granted to a key that was revoked or narrowed meanwhile, nor sent where a
  // proxy pointed before.
  const waited = incoming.body?.whole === null
  if ((waited || !anonymous) && (await context.reauthenticate?.()) === true) route = await admit()
  const refuseMoved = async (): Promise<void> => {
    if (proxy === null) return
    const target = await resolve()
    if (target.url.href !== url.href) throw new ServiceError('rights_changed')
  }
  if (waited) await refuseMoved()
  incoming.whileForwarding(async ({ destinations }) => {
    if (!isListed(url, destinations)) throw refusalOfEgress(new EgressRefusal('unlisted'))
    await refuseMoved()
  })
  const now = world.clock.now()
  const expressions =
    outbound.kind === 'whole' ? findBodyExpressions(outbound.bytes, outbound.contentType) : null
  const unread = expressions?.unread ?? ('unread' in outbound && outbound.unread)
  const marks = unread ? { 'bt-proxy-expressions': 'unread' } : {}
  if (options.dryRun) {
    const find = () => findReferenced(world, context, expressions!, { now, destination })
    const tokens = expressions === null ? [] : await asDryRun(context, find)
    const dryRun = describeDryRun(context, {
      method,
      route,
      url: shown,
      headers,
      body: expressions,
      tokens,
    })
    return { ...ok(dryRun), headers: marks }
  }

  const granted =
    expressions === null
      ? null
      : await readReferenced(world, context, expressions, { now, destination })
  const recording = commit(world, context, [])
  const rendering =
    granted !== null && granted.tokens.length > 0
      ? detokenizeBody(world, context, expressions!, { ...granted, now, privacyShown })
      : null
  // Awaited only after the audit commit: until then its error must not count as unhandled.
  rendering?.catch(() => {})
  await recording

  try {
    const body = (await rendering) ?? asItCame(outbound)
    const request = { method, headers, body, timeoutMs }
    await exchange(world.egress, route, request, incoming.reply, { accepted, unread })
  } catch (error) {
    const fault = outbound.kind === 'streamed' ? outbound.fault() : undefined
    throw fault ?? refusalOfEgress(error, { hinted: !anonymous })
  }
  return undefined
}

function asItCame(outbound: OutboundBody): OutboundRequest['body'] {
  if (outbound.kind === 'none') return null
  return outbound.kind === 'streamed' ? outbound.stream : outbound.bytes
}

/**
 * Asks the egress gateway whether anything may be sent to `url`, and records a refusal. If the name has no address, the
 * authorization is recorded before the error, because a DNS look-up has left the service. Keyless callers of a proxy are an
 * owner of their own: their number is unbounded, and callers with a key must not queue after them.
 */
async function vet(
  { egress }: ForwardingWorld,
  context: RequestContext,
  url: URL,
  sender: Sender,
  authorizeInvocation: () => void,
): Promise<Route> {
  try {
    return await egress.vet(sender, url, context.destinations)
  } catch (error) {
    if (error instanceof EgressRefusal) {
      const refused = { containers: [], allowed: false, by: [], destination: hostOf(url) } as const
      context.decisions.push({ permission: 'proxy:invoke', ...refused })
    } else if (error instanceof EgressFailure) authorizeInvocation()
    throw refusalOfEgress(error)
  }
}
