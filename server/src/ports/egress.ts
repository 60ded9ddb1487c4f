import type { Duplex } from 'node:stream'

/**
 * The egress gateway, the only way out: everything that leaves this service over a network goes through it.
 *
 * In two steps, so that a destination is known to be allowed before anything is opened for it: `vet` decides,
 * `send` goes exactly where was vetted and nowhere else, however names resolve by then.
 */
export interface Egress {
  /**
   * Decides whether anything may be sent to `url`, and resolves its name. No connection is opened. What is scarce
   * (lookups, connections) is shared out by `owner`, a tenant or those who call one of its proxies without a key.
   *
   * With `listed` only to destinations that are in it, whatever else is allowed; a name that is not is not even
   * resolved. Rejects with EgressRefusal for what nothing is ever sent to, with EgressFailure
   * (`unresolved`) when the name has no address.
   */
  vet(owner: string, url: URL, listed: readonly string[] | null): Promise<Route>

  /**
   * Sends `request` to where `route` leads, and tells `receiver` what comes back. Redirects are answers like
   * any other. Nothing is told once `done` is settled or `abort` was called.
   */
  send(route: Route, request: OutboundRequest, receiver: OutboundReceiver): OutboundCall

  /**
   * Opens a connection to `port` of `host` for bytes that nobody here reads, by the rules of `vet` for an https
   * URL and with `listed`. It has to begin with a TLS handshake, unless the destination may be plain http. Rejects as `vet` does,
   * and with EgressFailure when there is no connection.
   */
  tunnel(
    owner: string,
    host: string,
    port: number,
    listed: readonly string[] | null,
  ): Promise<Duplex>

  /** Ends what is under way and lets go of every connection. */
  close(): Promise<void>
}

/** A destination that was vetted. Only the adapter that made it knows what to do with it. */
export interface Route {
  readonly owner: string
  readonly url: URL
  /** Which rule let it through: it is a public address, or the operator allowed it by this entry. */
  readonly rule: { readonly name: 'public' } | { readonly name: 'allowed'; readonly entry: string }
}

export interface OutboundRequest {
  readonly method: string
  /** Names and values in turn, as they go out, but for Host, Content-Length and Transfer-Encoding. */
  readonly headers: readonly string[]
  /** What goes out; null for none. A stream of unknown length goes out in chunks. */
  readonly body: Uint8Array | OutboundStream | null
  /**
   * How long the header section of the answer may take, counted anew with each part of a stream that goes out, and then how
   * long its body may pause.
   */
  readonly timeoutMs: number
}

export interface OutboundStream {
  /** In bytes; null when nobody knows yet. More or less than was said fails the call. */
  readonly length: number | null
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface OutboundReceiver {
  /** Called once, before any data: headers as names and values in turn, as they came. */
  headerSection(status: number, reason: string, headers: readonly string[]): void
  /** Returns whether more may come at once; if not, nothing comes until `resume`. */
  data(chunk: Uint8Array): boolean
  /** Called once, when the answer is whole. */
  end(): void
}

export interface OutboundCall {
  /** Resolves after `end`; rejects with EgressFailure, also after a header section was told. */
  readonly done: Promise<void>
  resume(): void
  /** Drops the connection: `done` rejects with `aborted`. */
  abort(): void
}

/** Why nothing is sent to a destination: the rule that refuses it. */
export type EgressRule =
  | 'scheme' // neither https nor allowed otherwise
  | 'credentials' // a user or a password in the URL
  | 'host' // no host, or one that cannot be a name
  | 'literal' // an address where a name is asked for
  | 'port' // none that there is
  | 'address' // the name leads to an address that is not public
  | 'unlisted' // not among the application's destinations

export class EgressRefusal extends Error {
  override readonly name = 'EgressRefusal'
  readonly rule: EgressRule

  constructor(rule: EgressRule) {
    super(`Refused by the rule on ${rule}`)
    this.rule = rule
  }
}

export type EgressFault =
  | 'unresolved' // the name has no address, or nobody answered
  | 'unreachable' // no connection
  | 'tls' // no trustworthy one
  | 'reset' // it ended before the answer did
  | 'answer-invalid' // what came back is not HTTP, or too large a header section
  | 'timeout' // the header section took too long, or the body paused
  | 'aborted' // by us
  | 'request' // the body's stream failed or was not as long as it said

export class EgressFailure extends Error {
  override readonly name = 'EgressFailure'
  readonly fault: EgressFault

  constructor(fault: EgressFault, options?: ErrorOptions) {
    super(`The destination cannot be used: ${fault}`, options)
    this.fault = fault
  }
}
