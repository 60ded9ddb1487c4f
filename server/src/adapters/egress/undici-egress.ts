/**
 * The egress gateway: every outbound connection of the service passes through here. It prevents SSRF, including DNS
 * rebinding and request smuggling. Decision 0023.
 *
 *   proxy, callback, ...                                        reactor (through the jail's broker)
 *        | vet(sender, url, allowedDestinations)    | tunnel(tenantId, host, port, allowedDestinations)
 *   +------------------------------------------------------------------------+
 *   | vet      endpointOf(url)        parse: scheme, host, port              |
 *   |          isAllowedDestination() the destinations of the caller         |
 *   |          beforeLookup()         what no address could make right       |
 *   |          DNS: Names             per owner; kept 5 s, failures 1 s      |
 *   |            FairSemaphore        3 lookups at a time, 2 per owner       |
 *   |          judge(all addresses)   one forbidden address refuses all      |
 *   +------------------------------------------------------------------------+
 *        | VettedRoute: the addresses, no name                        | the addresses
 *        | send(route, request, receiver)                             |
 *   +-------------------------------------------+                     |
 *   | call     UndiciCall, or NodeCall for      |   Timekeeper: one   |
 *   |          fields undici would not send     |   timer, 250 ms     |
 *   +-------------------------------------------+                     |
 *        | admit                                                      |
 *   +-------------------------------------------+                     |
 *   | Pool     per sender, endpoint, addresses  |   1,000 pools,      |
 *   |          64 requests in flight,           |   the least         |
 *   |          256 queued                       |   recently used     |
 *   |   PooledConnection (undici) | DialAgent   |   retires           |
 *   +-------------------------------------------+                     |
 *        |                                                            |
 *   +------------------------------------------------------------------------+
 *   | dial     permits(address) again; connect to the address; compare the   |
 *   |          peer's address; TLS verified against the name                 |
 *   +------------------------------------------------------------------------+
 *        |                                                            |
 *   destination > read throttle > drop 1xx (undici)             destination: TLS of the reactor's
 *     > parser > call > receiver                                own, or plain text where allowed
 *
 * Invariants:
 *  - Sockets connect to vetted addresses, never to names. No second lookup can change the target (DNS rebinding).
 *  - Every address is checked twice: all of them in judge(), the dialled one again in dial().
 *  - Connections and TLS sessions are never shared between owners or destinations, nor name answers between owners.
 *  - Everything is judged by the rule of the tenant that sends: what is exempt for one tenant is refused for the others
 *    (decision 0092). No verdict is kept: each vet() judges, and each dial() judges again.
 *  - A connection carries one request at a time, over HTTP/1.1. Redirects are not followed. Only a GET is sent again, once
 *    (decision 0068).
 *  - Callers cannot set the fields that name the destination or frame the body: these come from the route and the body.
 *  - Queues, lookups, connection attempts, header sections and silence are bounded; reads are throttled per tick.
 */
import { LRUCache } from 'lru-cache'
import { networkInterfaces } from 'node:os'
import type { Duplex } from 'node:stream'
import type { SecureContext } from 'node:tls'
import type { IpAddress } from '../../base/ip-address.ts'
import { EGRESS_POOLS_MAX } from '../../base/limits.ts'
import { ReadThrottle, type TickClock } from '../../base/read-throttle.ts'
import {
  EgressFailure,
  EgressRefusal,
  senderOf,
  type Egress,
  type OutboundCall,
  type OutboundReceiver,
  type OutboundRequest,
  type Route,
  type Sender,
} from '../../ports/egress.ts'
import { addressKnownAs, type DestinationRule } from './destination-rule.ts'
import type { DialSettings, Target } from './dial.ts'
import { NodeCall } from './node-call.ts'
import { Names, systemResolve, type NameAnswer, type Resolve } from './names.ts'
import { isAllowedDestination, endpointOf, type EgressEndpoint } from './egress-endpoint.ts'
import type { Pool, PoolHistory } from './pool.ts'
import { ReuseHistory } from './reuse-history.ts'
import { TenantRules, type Exemptions } from './tenant-rules.ts'
import { Timekeeper } from './timekeeper.ts'
import { trustOf } from './trust.ts'

import { TunnelLimits } from './tunnel-limits.ts'
import { dialTunnel, tunnelUrl } from './tunnel.ts'
import { UndiciCall } from './undici-call.ts'
import { wayOf } from './way-of.ts'

export interface EgressSettings extends Exemptions {
  /** Certificate authorities in PEM, trusted in addition to the machine's. */
  readonly extraAuthorities: readonly string[]
  /** Replaces the system's resolver, for tests. */
  readonly resolve?: Resolve
}

/** The egress gateway, on undici and Node's HTTP client. Decision 0023. */
export class UndiciEgress implements Egress {
  readonly #rules: TenantRules
  readonly #names: Names
  readonly #timekeeper = new Timekeeper()
  readonly #throttle = new ReadThrottle(TICK_CLOCK)
  readonly #reuse = new ReuseHistory()
  readonly #authorities: readonly string[]
  /** By sender and destination. */
  readonly #pools = new LRUCache<string, Pool>({
    max: EGRESS_POOLS_MAX,
    dispose: (pool) => pool.retire(),
  })
  readonly #tunnels = new Set<Duplex>()
  readonly #tunnelLimits = new TunnelLimits(() => this.#timekeeper.now())
  #trust: SecureContext | null = null
  #closed = false

  constructor({ extraAuthorities, resolve = systemResolve, ...exemptions }: EgressSettings) {
    this.#rules = new TenantRules(exemptions, addressesOfThisMachine)
    this.#names = new Names(resolve, () => this.#timekeeper.now())
    this.#authorities = extraAuthorities
  }

  /** Declares `port` on this machine as the service's own: see DestinationRule. */
  own(port: number): void {
    this.#rules.own(port)
  }

  async vet(
    sender: Sender,
    url: URL,
    allowedDestinations: readonly string[] | null,
  ): Promise<Route> {
    carriers ??= await import('./pool.ts')
    const endpoint = endpointOf(url)
    const { tenantId, owner } = sender
    const rule = this.#rules.of(tenantId)
    const { addresses, texts, key } = await this.#addressesOf(sender, endpoint, allowedDestinations)
    const scheme = endpoint.secure ? 'https' : 'http'
    return new VettedRoute(sender, url, rule.judge(endpoint, addresses), {
      target: { endpoint, addresses: texts },
      sender,
      key: `${tenantId} ${owner} ${scheme} ${endpoint.host} ${endpoint.port} ${key}`,
    })
  }

  send(route: Route, request: OutboundRequest, receiver: OutboundReceiver): OutboundCall {
    if (!(route instanceof VettedRoute)) throw new Error('Cannot send: the route was not vetted')
    const { url } = route
    const path = pathOf(url)
    const pool = this.#poolFor(route.way)
    const { client, closes } = wayOf(request.headers)
    const Carrier = client === 'undici' ? UndiciCall : NodeCall
    const call = new Carrier(pool, path, closes, request, receiver, this.#timekeeper)
    if (this.#closed) call.fail(new EgressFailure('aborted'))
    return call
  }

  async tunnel(
    tenantId: string,
    host: string,
    port: number,
    allowedDestinations: readonly string[] | null,
    signal: AbortSignal,
  ): Promise<Duplex> {
    const endpoint = endpointOf(tunnelUrl(host, port))
    const rule = this.#rules.of(tenantId)
    const lease = this.#tunnelLimits.acquire(tenantId, endpoint.host)
    try {
      const answer = this.#addressesOf(senderOf(tenantId), endpoint, allowedDestinations)
      const { addresses, texts } = await unlessAborted(answer, signal)
      rule.judge(endpoint, addresses)
      const target = { endpoint: endpoint, addresses: texts }
      const plain = texts.every((it) => rule.permits({ ...endpoint, secure: false }, it))
      const socket = await dialTunnel(target, this.#dialling(rule), plain, signal)
      this.#tunnels.add(socket)
      socket.once('close', () => {
        this.#tunnels.delete(socket)
        lease.release()
      })
      if (this.#closed) socket.destroy()
      return socket
    } catch (error) {
      // What is refused was not dialled.
      if (!(error instanceof EgressRefusal)) lease.noteFailure()
      lease.release()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const it of this.#tunnels) it.destroy()
    this.#timekeeper.abortAll()
    this.#pools.clear()
    this.#timekeeper.stop()
  }

  /** Returns the addresses to judge. Throws EgressRefusal if no address could make the endpoint acceptable. */
  #addressesOf(
    { tenantId, owner }: Sender,
    endpoint: EgressEndpoint,
    allowedDestinations: readonly string[] | null,
  ): NameAnswer | Promise<NameAnswer> {
    if (allowedDestinations !== null && !isAllowedDestination(endpoint, allowedDestinations))
      throw new EgressRefusal('unlisted')
    this.#rules.of(tenantId).beforeLookup(endpoint)
    const { host, literal } = endpoint
    return literal === null ? this.#names.answer(owner, host) : literalAnswer(host, literal)
  }

  /** Returns how `rule`, that of one tenant, lets connections be made. */
  #dialling(rule: DestinationRule): DialSettings {
    return {
      trust: () => (this.#trust ??= trustOf(this.#authorities)),
      permits: (endpoint, address) => rule.permits(endpoint, address),
    }
  }

  #poolFor({ target, sender, key }: VettedPath): Pool {
    let pool = this.#pools.get(key)
    if (pool === undefined) {
      pool = this.#newPool(target, sender)
      this.#pools.set(key, pool)
    }
    return pool
  }

  #newPool(target: Target, { tenantId, owner }: Sender): Pool {
    const dialling = this.#dialling(this.#rules.of(tenantId))
    const readerOptions = { throttle: this.#throttle, owner }
    return new carriers!.Pool(target, dialling, readerOptions, this.#historyOf(owner, target))
  }

  /** Returns the history of a destination, whatever addresses its name has by then. */
  #historyOf(owner: string, { endpoint }: Target): PoolHistory {
    const destination = `${endpoint.secure} ${endpoint.host} ${endpoint.port}`
    const now = (): number => this.#timekeeper.now()
    return {
      now,
      noteClose: () => this.#reuse.noteClose(owner, destination, now()),
      isSteady: () => this.#reuse.isSteady(owner, destination, now()),
    }
  }
}

/** The pool and with it undici, loaded at the first request: a vault that sends nothing saves their 12 MB of memory. */
let carriers: typeof import('./pool.ts') | undefined

/** The vetted target of a route, and the pool for it. */
interface VettedPath {
  readonly target: Target
  readonly sender: Sender
  /** Key of the pool. */
  readonly key: string
}

class VettedRoute implements Route {
  readonly sender: Sender
  readonly url: URL
  readonly rule: Route['rule']
  readonly way: VettedPath

  constructor(sender: Sender, url: URL, rule: Route['rule'], way: VettedPath) {
    this.sender = sender
    this.url = url
    this.rule = rule
    this.way = way
  }
}

/** Returns the path and the query, with the `?` of an empty one, which the URL's own members do not show. */
function pathOf({ pathname, search, href }: URL): string {
  return search === '' && EMPTY_QUERY.test(href) ? `${pathname}?` : pathname + search
}

const EMPTY_QUERY = /^[^?#]*\?(?:#|$)/

function literalAnswer(host: string, literal: IpAddress): NameAnswer {
  return { addresses: [addressKnownAs(host, literal)], texts: [host], key: host }
}

/** Resolves as `promise` does, or rejects with EgressFailure (`aborted`) as soon as `signal` is aborted. */
async function unlessAborted<Value>(
  promise: Value | Promise<Value>,
  signal: AbortSignal,
): Promise<Value> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(new EgressFailure('aborted'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([aborted.promise, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

const TICK_CLOCK: TickClock = {
  yield: () => new Promise((resolve) => void setImmediate(resolve)),
  after: (ms) => new Promise((resolve) => void setTimeout(resolve, ms).unref()),
}

function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap((it) => (it ?? []).map((one) => one.address))
}
