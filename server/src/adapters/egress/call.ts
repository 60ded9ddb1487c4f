import { EGRESS_HEADERS_MAX } from '../../base/limits.ts'
import {
  EgressFailure,
  type OutboundCall,
  type OutboundReceiver,
  type OutboundRequest,
} from '../../ports/egress.ts'
import { failureOf } from './faults.ts'
import type { Timed, Timekeeper } from './timekeeper.ts'

/**
 * One request in flight, over either client: guarantees the order of its callbacks, its timeouts and its end.
 *
 * The client reports to onHeaderSection, onData, onEnd and onError, and gets calls to pause, resume, or drop the
 * connection.
 */
export abstract class EgressCall implements OutboundCall, Timed {
  readonly done: Promise<void>
  slot = -1
  protected readonly request: OutboundRequest
  readonly #receiver: OutboundReceiver
  readonly #timekeeper: Timekeeper
  readonly #resolve: () => void
  readonly #reject: (error: unknown) => void
  #over = false
  #paused = false
  #moved = false
  #deadline: number
  #inBody = false
  /** Backpressure: chunks that arrive after a pause, because a parser does not always stop at once. */
  #buffered: Uint8Array[] = []
  #ended = false

  constructor(request: OutboundRequest, receiver: OutboundReceiver, timekeeper: Timekeeper) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.done = promise
    this.#resolve = resolve
    this.#reject = reject
    this.request = request
    this.#receiver = receiver
    this.#timekeeper = timekeeper
    this.#deadline = timekeeper.now() + request.timeoutMs
    timekeeper.watch(this)
  }

  get over(): boolean {
    return this.#over
  }

  /**
   * Whether the request may be sent a second time: its method is safe (RFC 9110, section 9.2.1), and its body is still
   * there.
   */
  protected get repeatable(): boolean {
    const { method, body } = this.request
    return method === 'GET' && (body === null || body instanceof Uint8Array)
  }

  /** Whether `error` is the end of the connection before the response's header section was complete. */
  protected isClosedEarly(error: unknown): boolean {
    if (this.#over || this.#inBody) return false
    const failure = failureOf(error, false)
    return failure instanceof EgressFailure && failure.fault === 'reset'
  }

  /** Whether the receiver asked for a pause. */
  protected get paused(): boolean {
    return this.#paused
  }

  resume(): void {
    if (!this.#paused || this.#over) return
    this.#paused = false
    this.#moved = true
    while (this.#buffered.length > 0) {
      if (!this.#receiver.data(this.#buffered.shift()!)) this.#paused = true
      if (this.#paused || this.over) return
    }
    if (this.#ended) this.#finish()
    else this.goOn()
  }

  abort(): void {
    this.fail(new EgressFailure('aborted'))
  }

  /** Ends the call and its connection with `error`. */
  fail(error: unknown): void {
    if (this.#settle()) {
      this.#reject(failureOf(error, this.#inBody))
      this.drop()
    }
  }

  tick(now: number): void {
    // While the receiver pauses, or data still moves, the destination is not late.
    if (this.#moved || this.#paused) {
      this.#moved = false
      this.#deadline = now + this.request.timeoutMs
    } else if (now >= this.#deadline) this.fail(new EgressFailure('timeout'))
  }

  /** Notes that a part of the request was sent. */
  protected onSent(): void {
    this.#moved = true
  }

  protected onHeaderSection(status: number, reason: string, headers: readonly string[]): void {
    if (this.#over) return
    // Not a final status: 1xx never is, and no protocol switch was requested.
    if (status < 200 || headers.length > EGRESS_HEADERS_MAX * 2) {
      this.fail(new EgressFailure('answer-invalid'))
      return
    }
    this.#inBody = true
    this.#moved = true
    this.#receiver.headerSection(status, reason, headers)
  }

  /** Returns whether to continue reading. */
  protected onData(chunk: Uint8Array): boolean {
    if (this.#over) return false
    this.#moved = true
    if (this.#paused) this.#buffered.push(chunk)
    else if (!this.#receiver.data(chunk)) this.#paused = true
    return !this.#paused
  }

  protected onEnd(): void {
    if (this.#paused) this.#ended = true
    else this.#finish()
  }

  protected onError(error: unknown): void {
    if (this.#settle()) this.#reject(failureOf(error, this.#inBody))
  }

  /** Like onError(), for a destination without TLS that has never answered. */
  protected onErrorBeforeAnswer(error: unknown): void {
    if (!this.isClosedEarly(error)) this.onError(error)
    else this.onError(new EgressFailure('reset', { cause: error, hint: 'perhaps-tls' }))
  }

  /** Resumes reading after a pause. */
  protected abstract goOn(): void

  /** Drops the connection, or the place in the queue for one. */
  protected abstract drop(): void

  #finish(): void {
    if (!this.#settle()) return
    this.#receiver.end()
    this.#resolve()
  }

  #settle(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#buffered = []
    this.#timekeeper.leave(this)
    return true
  }
}
