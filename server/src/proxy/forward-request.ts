import { ServiceError } from '../base/service-error.ts'
import type { OutboundRequest } from '../ports/egress.ts'
import type { World } from '../ports/world.ts'
import { commit } from '../request/commit.ts'
import type { RequestContext } from '../request/context.ts'
import { refusalOfEgress } from '../request/egress-refusals.ts'
import { ok, type Answer } from '../request/response.ts'
import type { StreamingRequest } from '../request/streaming.ts'
import type { TokenSettings } from '../tokens/token-settings.ts'
import { findBodyExpressions, type BodyExpressions } from './bodies/body-expressions.ts'
import { detokenizeBody, findReferenced, readReferenced } from './detokenize-body.ts'
import { asDryRun, describeDryRun } from './dry-run.ts'
import { exchange } from './exchange.ts'
import { ForwardingTarget } from './forwarding-target.ts'
import { outboundHeaders } from './outbound-headers.ts'
import type { ProxySettings } from './proxy-settings.ts'
import { bufferBody, type OutboundBody } from './request-body.ts'
import { parseProxyOptions } from './reserved-headers.ts'

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
  const target = await ForwardingTarget.resolve(world, context, options, incoming.targetBelowPath)
  // A dry run reveals the destination, which anonymous callers may not know.
  if (target.anonymous && options.dryRun) throw new ServiceError('key_missing')
  let route = await target.admit()

  const outbound = await bufferBody(incoming.body, incoming.headers, !target.anonymous)
  // The client may have held its body back. Nothing is granted to a key that was revoked or narrowed meanwhile, nor sent where a
  // proxy pointed before.
  const waited = incoming.body?.whole === null
  const mayHaveChanged = waited || !target.anonymous
  if (mayHaveChanged && (await context.reauthenticate?.()) === true) route = await target.admit()
  if (waited) await target.requireUnmoved()
  incoming.whileForwarding((principal) => target.requireAllowed(principal))

  const expressions =
    outbound.kind === 'whole' ? findBodyExpressions(outbound.bytes, outbound.contentType) : null
  const unread = expressions?.unread ?? ('unread' in outbound && outbound.unread)
  const use = { now: world.clock.now(), destination: target.destination }
  if (options.dryRun) {
    const find = () => findReferenced(world, context, expressions!, use)
    const tokens = expressions === null ? [] : await asDryRun(context, find)
    const request = { method, route, url: target.shown, headers, body: expressions, tokens }
    const marks = unread ? { 'bt-proxy-expressions': 'unread' } : {}
    return { ...ok(describeDryRun(context, request)), headers: marks }
  }

  const rendered = await renderAndRecord(world, context, expressions, { ...use, privacyShown })
  try {
    const request = { method, headers, body: rendered ?? asItCame(outbound), timeoutMs }
    await exchange(world.egress, route, request, incoming.reply, { accepted, unread })
  } catch (error) {
    const fault = outbound.kind === 'streamed' ? outbound.fault() : undefined
    throw fault ?? refusalOfEgress(error, { hinted: !target.anonymous })
  }
  return undefined
}

interface RenderingOptions {
  readonly now: number
  readonly destination: string
  readonly privacyShown: boolean
}

/**
 * Returns the body with its expressions replaced, or null if it has none, once every decision is in the audit log: rendering
 * overlaps with that.
 */
async function renderAndRecord(
  world: ForwardingWorld,
  context: RequestContext,
  expressions: BodyExpressions | null,
  { now, destination, privacyShown }: RenderingOptions,
): Promise<OutboundRequest['body'] | null> {
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
  return await rendering
}

function asItCame(outbound: OutboundBody): OutboundRequest['body'] {
  if (outbound.kind === 'none') return null
  return outbound.kind === 'streamed' ? outbound.stream : outbound.bytes
}
