/** What a use case that forwards a request gets of it, and writes to: http/ has the sockets beneath. */
import type { Principal } from '../base/access.ts'
import type { World } from '../ports/world.ts'
import type { RequestContext } from './context.ts'

export interface StreamingRequest {
  readonly world: World
  readonly context: RequestContext
  readonly method: string
  /** The part of the request target after the operation's own path, as sent: empty, or from its `/` or `?` on. */
  readonly targetBelowPath: string
  /** Alternates names and values, as received. */
  readonly headers: readonly string[]
  /** Null when there is none. */
  readonly body: IncomingBody | null
  readonly reply: StreamingReply
  /**
   * Sets a check of the request in progress, which runs about once a second with the caller's present principal. An error of ours
   * ends the request; that the store is unavailable does not.
   */
  readonly whileForwarding: (check: (principal: Principal) => Promise<void>) => void
}

export interface IncomingBody {
  /** In bytes; null if not known yet. */
  readonly length: number | null
  /** The whole body, if it has arrived already; then nothing is left to read. */
  readonly whole: Buffer | null
  /**
   * Resolves when memory is reserved to keep the body whole; rejects with `tenant_busy`. A caller that forwards it as it comes
   * after all releases the reservation.
   */
  readonly reserve: () => Promise<void>
  readonly release: () => void
  /**
   * Allows the body any time in total, as long as it keeps a minimum rate. Until a caller that forwards it as it comes has called
   * this, all of it must arrive within REQUEST_TIMEOUT_MS.
   */
  readonly allowRate: () => void
  /** Can be read once. Rejects when the client aborts, and with `request_timeout` when it pauses or is too slow. */
  readonly chunks: AsyncIterable<Uint8Array>
}

/** A response, written chunk by chunk. */
export interface StreamingReply {
  /** `headers` alternates names and values; this server's own are added. All decisions must be in the audit log before. */
  begin(status: number, reason: string, headers: readonly string[]): void
  /** Returns whether to send more at once; if not, `onDrain` calls back when to go on. */
  data(chunk: Uint8Array): boolean
  onDrain(callback: () => void): void
  end(): void
  /**
   * Calls back when the response must not go on: the client is gone, or its key no longer works. At once if that has happened
   * already.
   */
  onGone(callback: () => void): void
}
