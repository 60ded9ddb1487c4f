import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { BODY_BYTES_MAX, BODY_BYTES_PER_S_MIN, REQUEST_TIMEOUT_MS } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Clock } from '../ports/clock.ts'
import { armTimeout, disarmTimeout, dropWait } from './connection/socket-timeouts.ts'
import { takeTime } from './connection/framing.ts'
import type { IncomingBody } from './streaming-endpoint.ts'
import type { RequestQuota } from './request-quota.ts'

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
  return message.complete ? bodyThatIsThere(message) : bodyToCome(response, quota, clock)
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

function bodyToCome(
  response: ServerResponse,
  quota: () => RequestQuota,
  clock: Pick<Clock, 'elapsed'>,
): WatchedBody {
  const message = response.req
  const stated = message.headers['content-length']
  const length = stated === undefined ? null : Number(stated)
  const hurry = takeTime(response)
  const waiting: Uint8Array[] = []
  let wanted: PromiseWithResolvers<IteratorResult<Uint8Array, undefined>> | null = null
  let failure: Error | null = null
  let ended = false
  let disposed = false
  let bytes = 0
  let atRate = false
  /** Milliseconds that the client was waited for, up to `waitingSince`. */
  let waitedMs = 0
  /** Null while it is not waited for. */
  let waitingSince: number | null = null

  response.on('socket', () => {
    if (wanted !== null) wait(true)
  })
  message.pause()
  message.on('data', (chunk: Uint8Array) => {
    if (disposed) return
    bytes += chunk.length
    waiting.push(chunk)
    message.pause()
    handOver()
  })
  message.on('end', () => {
    ended = true
    handOver()
  })
  message.on('timeout', () => {
    if (wanted !== null) fail(new ServiceError('request_timeout'))
  })
  message.on('error', fail)
  message.on('close', () => {
    if (!ended) fail(new Error('The client broke off in the middle of its body'))
  })

  return {
    length,
    whole: null,
    reserve: async () => await quota().reserveBody(length ?? BODY_BYTES_MAX),
    release: () => quota().releaseBody(),
    allowRate: () => void (atRate = true),
    chunks: { [Symbol.asyncIterator]: () => ({ next }) },
    check,
    fail,
    dispose,
  }

  function next(): Promise<IteratorResult<Uint8Array, undefined>> {
    wanted = Promise.withResolvers()
    const { promise } = wanted
    if (!handOver()) {
      wait(true)
      message.resume()
    }
    return promise
  }

  /** Also called while nothing comes: bytes that are no data, such as those of chunk extensions, keep the connection from being idle. */
  function check(): void {
    const now = waitingSince === null ? 0 : clock.elapsed() - waitingSince
    const allowed = REQUEST_TIMEOUT_MS + (atRate ? (bytes / BODY_BYTES_PER_S_MIN) * 1000 : 0)
    if (waitedMs + now > allowed) fail(new ServiceError('request_timeout'))
  }

  function wait(wanted: boolean): void {
    if (wanted) waitingSince ??= clock.elapsed()
    else if (waitingSince !== null) {
      waitedMs += clock.elapsed() - waitingSince
      waitingSince = null
    }
    // Until its response has the connection, the earlier responses control the timeout.
    const { socket } = response
    // Requests injected by tests have no socket.
    if (!(socket instanceof Socket)) return
    if (wanted) armTimeout(socket, 'body')
    else disarmTimeout(socket, 'body')
  }

  /** Hands the buffered data to the waiting reader. */
  function handOver(): boolean {
    if (wanted === null) return false
    const { resolve, reject } = wanted
    const chunk = waiting.shift()
    if (chunk !== undefined) resolve({ done: false, value: chunk })
    else if (failure !== null) reject(failure)
    else if (ended) resolve({ done: true, value: undefined })
    else return false
    wanted = null
    // A client that is not being read cannot be late.
    wait(false)
    return true
  }

  function fail(error: Error): void {
    failure ??= error
    handOver()
  }

  function dispose(): void {
    if (disposed) return
    disposed = true
    hurry()
    if (message.socket instanceof Socket) dropWait(message.socket, 'body')
    waiting.length = 0
    message.resume()
  }
}
