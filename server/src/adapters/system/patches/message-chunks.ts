import type { IncomingMessage } from 'node:http'

/** What Node calls of a message while its body comes in. */
export interface ChunkHandlers {
  /** Called with each chunk, and with null at the end. Returns whether to read on. */
  readonly take: (chunk: Buffer | null) => boolean
  /** Called when the reader of the body asks for more. */
  readonly read: (size: number) => void
  /** Called when the response has ended and nothing has read the body. */
  readonly discard: () => void
}

/** Has the body of `message` pass through `handlers`. Returns the message's own functions, by which it goes on from there. */
export function interceptChunks(
  message: IncomingMessage,
  { take, read, discard }: ChunkHandlers,
): { push: (chunk: Buffer | null) => boolean; read: (size: number) => void } {
  const own = { push: message.push.bind(message), read: message._read.bind(message) }
  Object.assign(message, { push: take, _read: read, _dump: discard })
  return own
}
