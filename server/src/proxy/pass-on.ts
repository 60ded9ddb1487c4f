import { authorize } from '../access/authorize.ts'
import { commit } from '../access/commit.ts'
import type { Caller } from '../base/access.ts'
import { ok, type Answer } from '../http/endpoint.ts'
import type { Passage } from '../http/passage.ts'
import type { TokenSettings } from '../tokens/token-settings.ts'
import { EgressRefusal, type OutboundRequest, type Route } from '../world/egress.ts'
import type { World } from '../world/world.ts'
import { readBody } from './bodies/read-body.ts'
import { joinDestination, parseBase } from './destination.ts'
import { detokenizeBody, findMentioned } from './detokenize-body.ts'
import { rehearse } from './dry-run.ts'
import { refusalOfEgress } from './egress-refusals.ts'
import { exchange } from './exchange.ts'
import type { ProxySettings } from './proxy-settings.ts'
import { holdBody } from './request-body.ts'
import { outboundHeaders } from './request-headers.ts'
import { parseWishes } from './reserved-headers.ts'

export type PassOnWorld = Pick<World, 'clock' | 'random' | 'keyring' | 'store' | 'egress'>

/**
 * Passes a request on to its destination, the expressions in its body replaced by what the caller may use of
 * the tokens, and writes back what the destination answers.
 *
 * Everything that can be refused is refused before anything is sent, and every decision is in the record
 * before that, with the destination. Throws what the nouns throw, `permission_missing`, and what
 * refusalOfEgress() returns. Asked for a dry run, it sends nothing and answers what it would have sent.
 *
 * Source: interface.md, Proxy.
 */
export async function passOn(
  world: PassOnWorld,
  caller: Caller,
  passage: Passage,
  { timeoutMs, privacyShown }: ProxySettings & Pick<TokenSettings, 'privacyShown'>,
): Promise<Answer | undefined> {
  const { method } = passage
  const wishes = parseWishes(passage.headers, caller.plan)
  const url = joinDestination(parseBase(wishes.url), passage.target)
  const { headers, accepted } = outboundHeaders(passage.headers, wishes, caller.traceId)
  const route = await vet(world, caller, url)
  const held = await holdBody(passage.body, passage.headers)

  const now = world.clock.now()
  const destination = url.host
  const read = held.kind === 'whole' ? readBody(held.bytes, held.contentType) : null
  const tokens = read === null ? [] : await findMentioned(world, caller, read, now)
  if (tokens.length === 0) authorize(caller, 'proxy:invoke', [], destination)
  if (wishes.dryRun) return ok(rehearse(caller, { method, route, headers, body: read, tokens }))

  let body: OutboundRequest['body'] = held.kind === 'passing' ? held.stream : null
  if (held.kind === 'whole') body = held.bytes
  if (read !== null && tokens.length > 0) {
    const uses = { tokens, now, destination, privacyShown }
    body = await detokenizeBody(world, caller, read, uses)
  }
  await commit(world, caller, [])

  try {
    const request = { method, headers, body, timeoutMs }
    await exchange(world.egress, route, request, passage.reply, accepted)
  } catch (error) {
    throw (held.kind === 'passing' ? held.fault() : undefined) ?? refusalOfEgress(error, MEMBER)
  }
  return undefined
}

const MEMBER = 'BT-PROXY-URL'

/** Asks the door out whether anything may be sent to `url`; a "no" is recorded. */
async function vet({ egress }: PassOnWorld, caller: Caller, url: URL): Promise<Route> {
  const { tenantId, destinations } = caller
  try {
    return await egress.vet(tenantId, url, destinations)
  } catch (error) {
    if (error instanceof EgressRefusal) {
      const refused = { containers: [], allowed: false, by: [], destination: url.host } as const
      caller.decisions.push({ permission: 'proxy:invoke', ...refused })
    }
    throw refusalOfEgress(error, MEMBER)
  }
}
