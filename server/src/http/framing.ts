import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ServiceError, type RefusalCode } from '../base/service-error.ts'
import { renderError } from './render-error.ts'

/**
 * Answers bytes that are not a well-formed request, and closes the connection.
 *
 * After a framing error nobody can say where the next request would begin, so there is none.
 */
export function refuseBadFraming(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && unhurried.has(socket)) return
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const { status, body } = renderError(
    new ServiceError(refusalOf(error.code), {
      error: ['The request is not well-formed HTTP/1.1.'],
    }),
  )
  const text = JSON.stringify(body)
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      'content-type: application/json; charset=utf-8\r\n' +
      `content-length: ${Buffer.byteLength(text)}\r\n` +
      `connection: close\r\n\r\n${text}`,
  )
}

/** Connections on which a body is coming in that may take its time, see takeTime(). */
const unhurried = new WeakSet<Socket>()

/**
 * Lets the body that is coming in on `socket` take longer than REQUEST_TIMEOUT_MS; returns what ends that.
 *
 * Node measures a request as a whole and asks here before it closes the connection. Whoever lets a body
 * take its time must see to it that it does not stop.
 */
export function takeTime(socket: Socket): () => void {
  unhurried.add(socket)
  return () => void unhurried.delete(socket)
}

function refusalOf(code: string | undefined): RefusalCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return 'body_invalid'
}
