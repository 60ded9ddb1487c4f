import type { IncomingMessage } from 'node:http'
import { endAfterAnswer } from './framing.ts'

/**
 * Has the connection of `message` end with its answer, and the rest of its body taken and thrown away after that.
 *
 * Whoever closes a connection while bytes come in resets it, and the other side forgets what it had not read yet: a client
 * that reads only when it has sent everything would see that the connection broke, and not why it was refused. It has as
 * long as for any request, REQUEST_TIMEOUT_MS. Call it before the answer is sent.
 */
export function lingerAfterAnswer(message: IncomingMessage): void {
  const { socket } = message
  endAfterAnswer(message)
  // What Node calls when it has been given the last answer.
  socket.destroySoon = () => {
    socket.end()
    if (message.complete) close()
    else message.once('end', close).resume()
  }

  function close(): void {
    if (socket.writableFinished) socket.destroy()
    else socket.once('finish', () => socket.destroy())
  }
}
