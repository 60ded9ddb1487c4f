import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { ServiceError } from '../base/service-error.ts'
import { armTimeout, disarmTimeout, dropWait } from './socket-timeouts.ts'
import { takeTime } from './framing.ts'
import type { IncomingBody } from './streaming-endpoint.ts'
import type { RequestQuota } from './request-quota.ts'

/**
 * The body of the request that `response` answers, chunk by chunk: the client is read no faster than the chunks are consumed.
 *
 * The body may take longer than other requests, because it may be large and its destination slow, but it must not pause for
 * REQUEST_TIMEOUT_MS while more is asked for. The rest that is never read is discarded, so that the next request on the
 * connection can be read.
 */
export function incomingBody(
  response: ServerResponse,
  quota: () => RequestQuota,
): IncomingBody & { dispose(): void } {
  const message = response.req
  return message.complete ? bodyThatIsThere(message) : bodyToCome(response, quota)
}

/** Most bodies come in the packet of their headers. */
function bodyThatIsThere(message: IncomingMessage): IncomingBody & { dispose(): void } {
  const whole = (message.read() as Buffer | null) ?? Buffer.alloc(0)
  return {
    length: whole.length,
    whole,
    reserve: async () => {},
    release: () => {},
    chunks: { [Symbol.asyncIterator]: () => assert.fail('There is nothing more to come') },
    dispose: () => {},
  }
}

function bodyToCome(
  response: ServerResponse,
  quota: () => RequestQuota,
): IncomingBody & { dispose(): void } {
  const message = response.req
  const stated = message.headers['content-length']
  const length = stated === undefined ? null : Number(stated)
  const hurry = takeTime(response)
  const waiting: Uint8Array[] = []
  let wanted: PromiseWithResolvers<IteratorResult<Uint8Array, undefined>> | null = null
  let failure: Error | null = null
  let ended = false
  let disposed = false

  response.on('socket', () => {
    if (wanted !== null) wait(true)
  })
  message.pause()
  message.on('data', (chunk: Uint8Array) => {
    if (disposed) return
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
    reserve: async () => await quota().reserveBody(length),
    release: () => quota().releaseBody(),
    chunks: { [Symbol.asyncIterator]: () => ({ next }) },
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

  /** Until its response has the connection, the earlier responses control the timeout. */
  function wait(wanted: boolean): void {
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
