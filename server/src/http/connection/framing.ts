import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ID_RANDOM_BYTES, idOf } from '../../base/id.ts'
import { LINGER_MS } from '../../base/limits.ts'
import { http } from '../../base/node-http.ts'
import { ServiceError, type RefusalCode } from '../../base/service-error.ts'
import type { Clock } from '../../ports/clock.ts'
import type { World } from '../../ports/world.ts'
import { renderError } from '../../request/render-error.ts'
import { connectionState } from './connection-state.ts'
import { inFlightOn } from './in-flight-responses.ts'

/**
 * Answers bytes that are not a well-formed request, and closes the connection.
 *
 * After a framing error the start of the next request is unknown, so none is read. The trace id is a new one: a header that was
 * sent cannot be distinguished from the malformed bytes.
 */
export function refuseBadFraming(
  { clock, random }: Pick<World, 'clock' | 'random'>,
  error: Error & { code?: string },
  socket: Socket,
): void {
  const { lastRequests, unhurried } = connectionState(socket)
  if (lastRequests.length > 0) return
  if (unhurried !== null && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return
  const all = inFlightOn(socket)
  const broken = all.find(({ req }) => !req.complete)
  // A response in progress leaves no room for another. A response queued after others has not begun to leave.
  const isLeaving = broken?.headersSent === true && broken.socket !== null
  if (!socket.writable || error.code === 'ECONNRESET' || isLeaving) {
    if (broken?.req.httpVersion === '1.0') socket.resetAndDestroy()
    else socket.destroy()
    return
  }
  // An earlier complete request is carried out and answered first; that answer is the last one.
  const last = all.findLast(({ req }) => req.complete)
  if (last !== undefined) {
    endAfterAnswer(last.req)
    // The request is incomplete, so any response to it would be wrong.
    broken?.destroy()
    last.once('close', () => {
      socket.end()
      closeSoon(clock, socket)
    })
    return
  }
  const { status, body } = renderError(new ServiceError(refusalOf(error.code), NOT_WELL_FORMED))
  const text = JSON.stringify(body)
  const traceId = idOf(clock.now(), random.bytes(ID_RANDOM_BYTES))
  socket.end(
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n` +
      'content-type: application/json; charset=utf-8\r\n' +
      `bt-trace-id: ${traceId}\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\n` +
      `connection: close\r\n\r\n${text}`,
  )
  closeSoon(clock, socket)
}

/**
 * Closes an ended connection after LINGER_MS, if the peer has not done so.
 *
 * Node does not: it checks once whether a request takes too long, and a client that got that refusal may stay forever.
 */
export function closeSoon(clock: Clock, socket: Socket): void {
  void clock.after(LINGER_MS).then(() => socket.destroy())
}

/** Response body for bytes that are not a request. */
export const NOT_WELL_FORMED = { error: ['The request is not well-formed HTTP/1.1.'] } as const

/** Closes the connection of `request` after its response, since the start of the next request is uncertain. */
export function endAfterAnswer(request: IncomingMessage): void {
  connectionState(request.socket).lastRequests.push(request)
}

/** Whether the connection closes after the response to this request; earlier ones are still answered before. */
export function endsAfterAnswer(request: IncomingMessage): boolean {
  return connectionState(request.socket).lastRequests.includes(request)
}

/** Whether a request that just arrived came after the last one that its connection answers. */
export function cameAfterLast({ socket }: IncomingMessage): boolean {
  return connectionState(socket).lastRequests.length > 0
}

/**
 * Lets the body coming in for `response` take longer than REQUEST_TIMEOUT_MS; returns a function that ends this.
 *
 * Node times a request as a whole and asks here before it closes the connection. The caller must make sure that the body does not
 * stall.
 */
export function takeTime(response: ServerResponse): () => void {
  const state = connectionState(response.req.socket)
  state.unhurried = response
  return () => {
    // Of two pipelined requests, the later one may be in progress by now.
    if (state.unhurried === response) state.unhurried = null
  }
}

function refusalOf(code: string | undefined): RefusalCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return 'body_invalid'
}
