import type { Duplex } from 'node:stream'

/**
 * The egress gateway: everything this service sends over a network goes through it (SSRF protection).
 *
 * It has two steps, so that a destination is known to be allowed before anything is opened for it: `vet` decides, `send` connects
 * exactly to the vetted addresses, however names resolve by then (DNS rebinding).
 */
export interface Egress {
  /**
   * Decides whether `sender` may send anything to `url`, and resolves its name. No connection is opened.
   *
   * With `allowedDestinations`, only those are allowed, whatever else is; other names are not even resolved. Rejects with
   * EgressRefusal for a forbidden destination, with EgressFailure (`unresolved`) if the name has no address.
   */
  vet(sender: Sender, url: URL, allowedDestinations: readonly string[] | null): Promise<Route>

  /**
   * Sends `request` to `route`, and passes the response to `receiver`. Redirects are responses like any other. The receiver is
   * not called after `done` is settled or `abort` was called.
   */
  send(route: Route, request: OutboundRequest, receiver: OutboundReceiver): OutboundCall

  /**
   * Opens a connection to `port` of `host` for code of a tenant, for bytes that are not inspected, by the rules of `vet` for an
   * https URL and with `allowedDestinations`. It must begin with a TLS handshake, unless the destination may be plain http.
   *
   * Rejects as `vet` does, with EgressLimitReached, and with EgressFailure if there is no connection: soon after `signal` is
   * aborted, as `aborted`.
   */
  tunnel(
    tenantId: string,
    host: string,
    port: number,
    allowedDestinations: readonly string[] | null,
    signal: AbortSignal,
  ): Promise<Duplex>

  /** Aborts calls in progress and closes every connection. */
  close(): Promise<void>
}

/** On whose behalf something is sent. */
export interface Sender {
  /** The tenant: what the operator exempted for it is allowed. */
  readonly tenantId: string
  /** Scarce resources (look-ups, connections) are shared fairly by it: the tenant, or the keyless callers of one of its proxies. */
  readonly owner: string
}

/** Returns the sender for requests of a tenant; `proxyId` is given for keyless callers of that proxy. */
export function senderOf(tenantId: string, proxyId?: string): Sender {
  return { tenantId, owner: proxyId ?? tenantId }
}

/** A vetted destination. Opaque except to the adapter that made it. */
export interface Route {
  readonly sender: Sender
  readonly url: URL
  /** The rule that allowed it: it is a public address, or the operator allowed it by this item. */
  readonly rule: { readonly name: 'public' } | { readonly name: 'allowed'; readonly entry: string }
}

export interface OutboundRequest {
  readonly method: string
  /** Alternates names and values, sent as they are, without Host, Content-Length and Transfer-Encoding. */
  readonly headers: readonly string[]
  /** The body; null for none. A stream of unknown length is sent with chunked encoding. */
  readonly body: Uint8Array | OutboundStream | null
  /**
   * Timeout for the header section of the response, restarted with each part of a stream that is sent, and then for pauses of its
   * body.
   */
  readonly timeoutMs: number
}

export interface OutboundStream {
  /** In bytes; null if not known yet. A stream of another length fails the call. */
  readonly length: number | null
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface OutboundReceiver {
  /** Called once, before any data: `headers` alternates names and values, as received. */
  headerSection(status: number, reason: string, headers: readonly string[]): void
  /** Returns whether more may come at once; if not, nothing comes until `resume`. */
  data(chunk: Uint8Array): boolean
  /** Called once, when the response is complete. */
  end(): void
}

export interface OutboundCall {
  /** Resolves after `end`; rejects with EgressFailure, even after `headerSection` was called. */
  readonly done: Promise<void>
  resume(): void
  /** Drops the connection: `done` rejects with `aborted`. */
  abort(): void
}

/** The rule that refuses a destination. */
export type EgressRule =
  | 'scheme' // neither https nor allowed otherwise
  | 'credentials' // a user or a password in the URL
  | 'host' // no host, or one that cannot be a name
  | 'literal' // an address instead of a name
  | 'port' // invalid port
  | 'address' // the name resolves to an address that is not public
  | 'unlisted' // not among the destinations of the application and the tenant

export class EgressRefusal extends Error {
  override readonly name = 'EgressRefusal'
  readonly rule: EgressRule

  constructor(rule: EgressRule) {
    super(`Refused by the rule on ${rule}`)
    this.rule = rule
  }
}

/** A tunnel would be one too many. The message, which is for the code that asked, says which limit it is. */
export class EgressLimitReached extends Error {
  override readonly name = 'EgressLimitReached'
}

export type EgressFault =
  | 'unresolved' // the name has no address, or the look-up got no answer
  | 'unreachable' // no connection
  | 'tls' // no trusted connection
  | 'reset' // the connection ended before the response did
  | 'answer-invalid' // the response is not HTTP, or its header section too large
  | 'timeout' // the header section took too long, or the body paused
  | 'aborted' // by us
  | 'request' // the body's stream failed or did not have its declared length

/** The likely reason for a failure: the scheme of the URL is not what the port speaks. */
export type EgressHint =
  | 'no-tls' // it answered a TLS handshake with something else
  | 'tls' // it answered plain http with a TLS alert
  | 'perhaps-tls' // it never answered plain http and closed the connection, as TLS servers do

export class EgressFailure extends Error {
  override readonly name = 'EgressFailure'
  readonly fault: EgressFault
  readonly hint: EgressHint | null

  constructor(
    fault: EgressFault,
    { hint = null, ...options }: ErrorOptions & { readonly hint?: EgressHint | null } = {},
  ) {
    super(`The destination cannot be used: ${fault}`, options)
    this.fault = fault
    this.hint = hint
  }
}
