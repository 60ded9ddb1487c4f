import type { RequestContext, InProcessCaller, Principal } from '../base/access.ts'
import type { World } from '../ports/world.ts'
import type { Answer, Operation } from './endpoint.ts'

/**
 * One operation that forwards requests as they come: any body, of any size and type, nothing of it read,
 * and whatever path there is below its own. The answer is another's, and written as it comes.
 *
 * Idempotency keys mean nothing to it, and every error is rendered as the proxy's own.
 */
export interface StreamingEndpoint extends Operation {
  /**
   * Who calls when no key is sent; null for nobody, who is refused. Such a caller is asked for no permission
   * on admission: what it may is for `stream` to decide. `inProcessCaller` is whose code is asking, see AccessPort.
   */
  readonly withoutKey?: (
    world: World,
    asked: Pick<StreamingRequest, 'requestTarget' | 'headers'> & {
      readonly inProcessCaller: InProcessCaller | null
    },
  ) => Promise<Principal | null>
  /**
   * Resolves when the answer is written, or with an answer of our own. Throws before the answer is begun
   * for an error; throwing after that breaks the connection.
   */
  readonly stream: (request: StreamingRequest) => Promise<Answer | undefined>
}

export interface StreamingRequest {
  readonly world: World
  readonly context: RequestContext
  readonly method: string
  /** What was asked for after the operation's own path, as sent: nothing, or from its `/` or `?` on. */
  readonly requestTarget: string
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[]
  /** Null when there is none. */
  readonly body: IncomingBody | null
  readonly reply: StreamingReply
}

export interface IncomingBody {
  /** In bytes; null when nobody knows yet. */
  readonly length: number | null
  /** All of it, if it is there already; then there is nothing to be read. */
  readonly whole: Buffer | null
  /**
   * Resolves when memory is reserved to keep it whole; rejects with `tenant_busy`. Whoever forwards it as it comes after
   * all releases that.
   */
  readonly reserve: () => Promise<void>
  readonly release: () => void
  /** Can be read once. Rejects when the client breaks off, and with `request_timeout` when it pauses. */
  readonly chunks: AsyncIterable<Uint8Array>
}

/** An answer, written bit by bit. */
export interface StreamingReply {
  /** Headers are names and values in turn; those of this server are added. Nothing may be unrecorded. */
  begin(status: number, reason: string, headers: readonly string[]): void
  /** Returns whether more is welcome at once; if not, `onDrain` tells when. */
  data(chunk: Uint8Array): boolean
  onDrain(callback: () => void): void
  end(): void
  /** Calls back when whoever asked is gone before the answer was whole: at once if so already. */
  onGone(callback: () => void): void
}

export function isStreaming(operation: Operation): operation is StreamingEndpoint {
  return 'stream' in operation
}

/** Names a streaming endpoint's type, so that its record is checked where it is written. */
export function streamingEndpoint(record: StreamingEndpoint): StreamingEndpoint {
  return record
}
