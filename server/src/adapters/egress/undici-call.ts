import type { Dispatcher } from 'undici'
import type { OutboundReceiver, OutboundRequest } from '../../ports/egress.ts'
import { EgressCall } from './call.ts'
import type { PooledConnection } from './pooled-connection.ts'
import { measured } from './measured.ts'
import type { QueuedCall, Pool } from './pool.ts'
import type { Timekeeper } from './timekeeper.ts'

/** A request on a pooled connection of undici. It is its own handler, which saves allocations per request. */
export class UndiciCall extends EgressCall implements QueuedCall, Dispatcher.DispatchHandler {
  readonly #pool: Pool
  readonly #path: string
  /** Whether the request itself asks for the connection to close. */
  readonly #closes: boolean
  #connection: PooledConnection | null = null
  #controller: Dispatcher.DispatchController | null = null
  /** Bytes of the body still to come, if the header section gave its length. */
  #left = Infinity

  constructor(
    pool: Pool,
    path: string,
    closes: boolean,
    request: OutboundRequest,
    receiver: OutboundReceiver,
    timekeeper: Timekeeper,
  ) {
    super(request, receiver, timekeeper)
    this.#pool = pool
    this.#path = path
    this.#closes = closes
    pool.admit(this)
  }

  begin(): void {
    const own = this.#closes || (!this.repeatable && !this.#pool.history.isSteady())
    this.#sendOn(own ? this.#pool.newConnection({ reusable: false }) : this.#pool.takeConnection())
  }

  #sendOn(connection: PooledConnection): void {
    this.#connection = connection
    this.#controller = null
    const { method, headers, body } = this.request
    connection.dispatch(
      {
        path: this.#path,
        method,
        headers: headersOf(headers, body),
        body:
          body === null || body instanceof Uint8Array ? body : measured(body, () => this.onSent()),
        // Announces the close, so that the destination is the one to close.
        reset: !connection.reusable,
      } as Dispatcher.DispatchOptions,
      this,
    )
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.over) this.drop()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    reason = '',
  ): void {
    if (status >= 100 && status < 200 && status !== 101) return
    const headers = (controller.rawHeaders as Buffer[]).map(latin1)
    this.#left = lengthOf(headers)
    this.#pool.onAnswer()
    this.onHeaderSection(status, asSent(reason), headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#left -= chunk.byteLength
    this.#connection?.countChunk(chunk.byteLength)
    // After the last byte there is nothing left to pause. If undici were paused there, it would report the close of a
    // connection that is not kept alive as a truncated body.
    if (!this.onData(chunk) && this.#left > 0) controller.pause()
  }

  onResponseEnd(): void {
    this.#release()
    this.onEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    const reused = this.#connection !== null && this.#connection.releasedAt !== null
    if (reused && this.isClosedEarly(error)) {
      this.#pool.history.noteClose()
      if (this.repeatable) {
        this.#connection!.drop()
        this.#sendOn(this.#pool.newConnection())
        return
      }
    }
    this.#release()
    if (this.#pool.mayExpectTls) this.onErrorBeforeAnswer(error)
    else this.onError(error)
  }

  protected goOn(): void {
    // Not inside another call's parser callback: undici has a single parser.
    queueMicrotask(() => this.#controller?.resume())
  }

  protected drop(): void {
    if (this.#connection === null) this.#pool.leave(this)
    else if (this.#controller === null) this.#connection.drop()
    else this.#controller.abort(DROPPED)
  }

  #release(): void {
    const connection = this.#connection
    this.#connection = null
    if (connection !== null) this.#pool.release(connection)
  }
}

const DROPPED = new Error('The call was given up')

function headersOf(
  headers: readonly string[],
  body: OutboundRequest['body'],
): readonly string[] | string[] {
  if (body === null || body instanceof Uint8Array || body.length === null) return headers
  return [...headers, 'content-length', String(body.length)]
}

/** Returns the body's length from the header section; the parser has verified that there is one value, in digits. */
function lengthOf(headers: readonly string[]): number {
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    if (name.length === 14 && name.toLowerCase() === 'content-length')
      return Number(headers[at + 1])
  }
  return Infinity
}

function latin1(bytes: Buffer): string {
  return bytes.toString('latin1')
}

/** Undici decodes the reason phrase as UTF-8, although its encoding is undefined; undecodable text is not forwarded. */
function asSent(reason: string): string {
  return PLAIN.test(reason) ? reason : ''
}

const PLAIN = /^[\t\x20-\x7e]*$/
