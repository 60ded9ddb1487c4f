import type { IncomingMessage } from 'node:http'
import { closeLastResponseBy } from '../../adapters/system/patches/socket-closing.ts'
import { LINGER_CHUNKS_MAX } from '../../base/limits.ts'
import type { Clock } from '../../ports/clock.ts'
import { closeSoon, endAfterAnswer } from './framing.ts'

/**
 * Ends the connection of `message` with its response, then reads and discards the rest of its body: for LINGER_MS, and in at most
 * LINGER_CHUNKS_MAX chunks.
 *
 * Closing a connection while bytes come in resets it, and the peer drops data it had not read yet: a client that reads only after
 * it has sent everything would see a broken connection instead of the refusal. Call this before the response is sent.
 */
export function lingerAfterAnswer(clock: Clock, message: IncomingMessage): void {
  const { socket } = message
  let chunks = 0
  endAfterAnswer(message)
  closeLastResponseBy(socket, () => {
    socket.end()
    closeSoon(clock, socket)
    if (message.complete) close()
    else message.once('end', close).on('data', count).resume()
  })

  function count(): void {
    if (++chunks > LINGER_CHUNKS_MAX) socket.destroy()
  }

  function close(): void {
    if (socket.writableFinished) socket.destroy()
    else socket.once('finish', () => socket.destroy())
  }
}
