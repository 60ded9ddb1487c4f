import type { IncomingMessage } from 'node:http'
import { LINGER_CHUNKS_MAX } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import { closeSoon, endAfterAnswer } from './framing.ts'

/**
 * Has the connection of `message` end with its answer, and takes the rest of its body after that, to throw it away:
 * for LINGER_MS, and not in more than LINGER_CHUNKS_MAX pieces.
 *
 * Whoever closes a connection while bytes come in resets it, and the other side forgets what it had not read yet: a client
 * that reads only when it has sent everything would see that the connection broke, and not why it was refused.
 * Call it before the answer is sent.
 */
export function lingerAfterAnswer(clock: Clock, message: IncomingMessage): void {
  const { socket } = message
  let chunks = 0
  endAfterAnswer(message)
  // What Node calls when it has been given the last answer.
  socket.destroySoon = () => {
    socket.end()
    closeSoon(clock, socket)
    if (message.complete) close()
    else message.once('end', close).on('data', count).resume()
  }

  function count(): void {
    if (++chunks > LINGER_CHUNKS_MAX) socket.destroy()
  }

  function close(): void {
    if (socket.writableFinished) socket.destroy()
    else socket.once('finish', () => socket.destroy())
  }
}
