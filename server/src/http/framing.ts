import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ID_RANDOM_BYTES, idOf } from '../base/id.ts'
import { LINGER_MS } from '../base/limits.ts'
import { http } from '../base/node-http.ts'
import { ServiceError, type RefusalCode } from '../base/service-error.ts'
import type { Clock } from '../ports/clock.ts'
import type { World } from '../ports/world.ts'
import { renderError } from './render-error.ts'
import { inFlightOn } from './in-flight-responses.ts'

/**
 * Answers bytes that are not a well-formed request, and closes the connection.
 *
 * After a framing error nobody can say where the next request would begin, so there is none. The trace id is a new one:
 * what was sent along cannot be told from what is wrong.
 */
export function refuseBadFraming(
  { clock, random }: Pick<World, 'clock' | 'random'>,
  error: Error & { code?: string },
  socket: Socket,
): void {
  if (ending.has(socket)) return
  if (unhurried.has(socket) && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return
  const all = inFlightOn(socket)
  const broken = all.find(({ req }) => !req.complete)
  // In the middle of an answer there is no room for another. One that waits behind others has not begun to leave.
  const isLeaving = broken?.headersSent === true && broken.socket !== null
  if (!socket.writable || error.code === 'ECONNRESET' || isLeaving) {
    if (broken?.req.httpVersion === '1.0') socket.resetAndDestroy()
    else socket.destroy()
    return
  }
  // What was asked before has its answer first, for it is carried out, and that is the last one.
  const last = all.findLast(({ req }) => req.complete)
  if (last !== undefined) {
    ending.add(socket)
    // Nobody knows what it would have been, so whatever answers it is no answer.
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
 * Closes a connection that was ended after LINGER_MS, if the other side has not done so.
 *
 * Node does not: it looks once whether a request takes too long, and whoever has been told so may stay for ever.
 */
export function closeSoon(clock: Clock, socket: Socket): void {
  void clock.after(LINGER_MS).then(() => socket.destroy())
}

/** What is said of a request that is not one. */
export const NOT_WELL_FORMED = { error: ['The request is not well-formed HTTP/1.1.'] } as const

/** Connections that end with an answer that is on its way. */
const ending = new WeakSet<Socket>()

/** Has the connection of `request` end with its answer: nobody can say for sure where the next one begins. */
export function endAfterAnswer({ socket }: IncomingMessage): void {
  ending.add(socket)
}

/** Whether the connection ends with the answer to this request or to one before it, which then is the last. */
export function endsAfterAnswer({ socket }: IncomingMessage): boolean {
  return ending.has(socket)
}

/** Connections on which a body is coming in that may take its time, and what answers it. */
const unhurried = new WeakMap<Socket, ServerResponse>()

/**
 * Lets the body that is coming in for `response` take longer than REQUEST_TIMEOUT_MS; returns what ends that.
 *
 * Node measures a request as a whole and asks here before it closes the connection. Whoever lets a body
 * take its time must see to it that it does not stop.
 */
export function takeTime(response: ServerResponse): () => void {
  const { socket } = response.req
  unhurried.set(socket, response)
  return () => {
    // Of two requests that were sent together, the later one may be on its way by now.
    if (unhurried.get(socket) === response) unhurried.delete(socket)
  }
}

function refusalOf(code: string | undefined): RefusalCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return 'body_invalid'
}
