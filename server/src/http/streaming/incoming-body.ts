import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { BODY_BYTES_MAX, BODY_BYTES_PER_S_MIN, REQUEST_TIMEOUT_MS } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Clock } from '../../ports/clock.ts'
import { armTimeout, disarmTimeout, dropWait } from '../connection/socket-timeouts.ts'
import { takeTime } from '../connection/framing.ts'
import type { IncomingBody } from '../../request/streaming.ts'
import type { RequestQuota } from '../request-quota.ts'

/** An incoming body, and what its endpoint does with it. */
export interface WatchedBody extends IncomingBody {
  /** Ends the body with an error if it comes too slowly. To be called about once a second. */
  check(): void
  /** Ends the body with an error. */
  fail(error: Error): void
  dispose(): void
}

/**
 * The body of the request that `response` answers, chunk by chunk: the client is read no faster than the chunks are consumed.
 *
 * A body that is forwarded may take longer than other requests, because it may be large and its destination slow, but it must
 * neither pause for REQUEST_TIMEOUT_MS while more is asked for, nor fall below BODY_BYTES_PER_S_MIN. Only the time that the client
 * is waited for counts. The rest that is never read is discarded, so that the next request on the connection can be read.
 */
export function incomingBody(
  response: ServerResponse,
  quota: () => RequestQuota,
  clock: Pick<Clock, 'elapsed'>,
): WatchedBody {
  const message = response.req
  return message.complete ? bodyThatIsThere(message) : new BodyToCome(response, quota, clock)
}

/** Most bodies come in the packet of their headers. */
function bodyThatIsThere(message: IncomingMessage): WatchedBody {
  const whole = (message.read() as Buffer | null) ?? Buffer.alloc(0)
  return {
    length: whole.length,
    whole,
    reserve: async () => {},
    release: () => {},
    allowRate: () => {},
    chunks: { [Symbol.asyncIterator]: () => assert.fail('There is nothing more to come') },
    check: () => {},
    fail: () => {},
    dispose: () => {},
  }
}

/** A body of which some, or all, has not arrived yet. */
class BodyToCome implements WatchedBody {
  readonly length: number | null
  readonly whole = null
  readonly #response: ServerResponse
  readonly #message: IncomingMessage
  readonly #quota: () => RequestQuota
  readonly #clock: Pick<Clock, 'elapsed'>
  /** Restores the timeouts of an ordinary request. */
  readonly #hurry: () => void
  readonly #arrived: Uint8Array[] = []
  /** The reader that waits for the next chunk. */
  #wanted: PromiseWithResolvers<IteratorResult<Uint8Array, undefined>> | null = null
  #failure: Error | null = null
  #ended = false
  #disposed = false
  #bytes = 0
  #atRate = false
  /** Milliseconds that the client was waited for, up to `#waitingSince`. */
  #waitedMs = 0
  /** Null while it is not waited for. */
  #waitingSince: number | null = null

  constructor(response: ServerResponse, quota: () => RequestQuota, clock: Pick<Clock, 'elapsed'>) {
    const message = response.req
    const stated = message.headers['content-length']
    this.length = stated === undefined ? null : Number(stated)
    this.#response = response
    this.#message = message
    this.#quota = quota
    this.#clock = clock
    this.#hurry = takeTime(response)
    response.on('socket', () => {
      if (this.#wanted !== null) this.#wait(true)
    })
    message.pause()
    message.on('data', (chunk: Uint8Array) => this.#take(chunk))
    message.on('end', () => {
      this.#ended = true
      this.#handOver()
    })
    message.on('timeout', () => {
      if (this.#wanted !== null) this.fail(new ServiceError('request_timeout'))
    })
    message.on('error', (error) => this.fail(error))
    message.on('close', () => {
      if (!this.#ended) this.fail(new Error('The client broke off in the middle of its body'))
    })
  }

  readonly reserve = async (): Promise<void> =>
    await this.#quota().reserveBody(this.length ?? BODY_BYTES_MAX)

  readonly release = (): void => this.#quota().releaseBody()

  readonly allowRate = (): void => void (this.#atRate = true)

  readonly chunks = { [Symbol.asyncIterator]: () => ({ next: () => this.#next() }) }

  /** Also called while nothing comes: bytes that are no data, such as those of chunk extensions, keep the connection from being idle. */
  check(): void {
    const since = this.#waitingSince
    const now = since === null ? 0 : this.#clock.elapsed() - since
    const atRateMs = this.#atRate ? (this.#bytes / BODY_BYTES_PER_S_MIN) * 1000 : 0
    if (this.#waitedMs + now > REQUEST_TIMEOUT_MS + atRateMs) {
      this.fail(new ServiceError('request_timeout'))
    }
  }

  fail(error: Error): void {
    this.#failure ??= error
    this.#handOver()
  }

  dispose(): void {
    if (this.#disposed) return
    this.#disposed = true
    this.#hurry()
    const { socket } = this.#message
    if (socket instanceof Socket) dropWait(socket, 'body')
    this.#arrived.length = 0
    this.#message.resume()
  }

  #take(chunk: Uint8Array): void {
    if (this.#disposed) return
    this.#bytes += chunk.length
    this.#arrived.push(chunk)
    this.#message.pause()
    this.#handOver()
  }

  #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#wanted = Promise.withResolvers()
    const { promise } = this.#wanted
    if (!this.#handOver()) {
      this.#wait(true)
      this.#message.resume()
    }
    return promise
  }

  /** Hands what has arrived to the waiting reader. */
  #handOver(): boolean {
    if (this.#wanted === null) return false
    const { resolve, reject } = this.#wanted
    const chunk = this.#arrived.shift()
    if (chunk !== undefined) resolve({ done: false, value: chunk })
    else if (this.#failure !== null) reject(this.#failure)
    else if (this.#ended) resolve({ done: true, value: undefined })
    else return false
    this.#wanted = null
    // A client that is not being read cannot be late.
    this.#wait(false)
    return true
  }

  #wait(wanted: boolean): void {
    if (wanted) this.#waitingSince ??= this.#clock.elapsed()
    else if (this.#waitingSince !== null) {
      this.#waitedMs += this.#clock.elapsed() - this.#waitingSince
      this.#waitingSince = null
    }
    // Until its response has the connection, the earlier responses control the timeout.
    const { socket } = this.#response
    // Requests injected by tests have no socket.
    if (!(socket instanceof Socket)) return
    if (wanted) armTimeout(socket, 'body')
    else disarmTimeout(socket, 'body')
  }
}
