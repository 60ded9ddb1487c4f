import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** Node's own handling of a request whose header section was parsed. Its result tells the parser how to go on. */
export type OnIncoming = (message: IncomingMessage, keepAlive: boolean) => number

/** The part of Node's HTTP parser that is used here. It has been there, unchanged, since before Node 12. */
interface Parser {
  onIncoming?: OnIncoming
  resume(): void
}

/** Tells the parser to stop after this header section: `HPE_PAUSED` in the interface of llhttp. */
export const STOP = 21

/**
 * Has `take` called for each request on a connection to an HTTP server, in place of Node's own handling, which it is given.
 * Returns false if the parser lacks the means.
 */
export function interceptRequests(
  socket: Duplex,
  take: (message: IncomingMessage, keepAlive: boolean, own: OnIncoming) => number,
): boolean {
  const parser = parserOf(socket)
  const own = parser?.onIncoming
  if (typeof own !== 'function') return false
  parser!.onIncoming = (message, keepAlive) => take(message, keepAlive, own)
  return true
}

/** Whether what arrives on the connection is parsed as HTTP: not after an upgrade, and no longer once it is closed. */
export function isParsed(socket: Duplex): boolean {
  // Node takes it away. Where it never was, something else parses.
  return (socket as ParsedSocket).parser !== null
}

/** Resumes a paused parser. */
export function resumeParser(socket: Duplex): void {
  parserOf(socket)?.resume()
}

/** Returns the bytes that were read but not parsed, if `error` only says that the parser was paused; null otherwise. */
export function bytesAfterStop(error: Error): Buffer | null {
  const { code, rawPacket, bytesParsed } = error as StopError
  return code === 'HPE_PAUSED' ? rawPacket!.subarray(bytesParsed) : null
}

/** Whether the request asks for another protocol. To be called before Node handles it, which takes the mark away if nothing answers. */
export function isUpgrade(message: IncomingMessage): boolean {
  return (message as { upgrade?: boolean }).upgrade === true
}

/** What Node reports of a parser that stopped. */
interface StopError extends Error {
  readonly code?: string
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

function parserOf(socket: Duplex): Parser | null {
  return (socket as ParsedSocket).parser ?? null
}

type ParsedSocket = Duplex & { readonly parser?: Parser | null }
