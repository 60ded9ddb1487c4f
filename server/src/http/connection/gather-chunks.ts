import type { IncomingMessage } from 'node:http'
import { interceptChunks } from '../../adapters/system/patches/message-chunks.ts'
import { BytePile } from '../../base/byte-pile.ts'
import type { ReadThrottle } from '../../base/read-throttle.ts'
import type { Clock } from '../../ports/clock.ts'

/**
 * Joins the chunks of a body that came together, and lets the throttle pause a connection that sends many small ones at once,
 * even if the body is discarded.
 *
 * Node emits an event for every chunk, and the 64 KiB it reads at once may hold ten thousand: each on its own way to a store or a
 * destination, they hold up all other requests for a second. Call this before any of the body is read.
 */
export function gatherChunks(
  message: IncomingMessage,
  clock: Pick<Clock, 'yield'>,
  throttle: ReadThrottle,
): void {
  if (message.headers['transfer-encoding'] === undefined) return
  let pile = new BytePile()
  let chunks = 0
  /** Chunks announced to the throttle before they came. */
  let foreseen = 0
  let paused = false
  /** Whether the reader asked for more meanwhile. */
  let wanted = false

  const handlers = { take, read: readThrottled, discard: throwAway }
  const { push, read } = interceptChunks(message, handlers)

  /** Returns whether to read on, as push() does. */
  function take(chunk: Buffer | null): boolean {
    if (chunk === null) {
      pass()
      return push(null)
    }
    if (chunks === 0) void clock.yield().then(pass)
    chunks += 1
    if (foreseen > 0) foreseen -= 1
    else throttle.count(chunk.length)
    pile.add(chunk)
    return chunks <= FEW && message.readableLength + pile.length < message.readableHighWaterMark
  }

  function pass(): void {
    if (chunks === 0) return
    const whole = pile.whole()
    if (chunks > FEW && throttle.isExhausted) pause(chunks)
    pile = new BytePile()
    chunks = 0
    push(whole)
  }

  function pause(last: number): void {
    paused = true
    message.socket.pause()
    const resume = (): void => {
      paused = false
      foreseen = last
      if (wanted) read(0)
      wanted = false
    }
    throttle.wait(message.socket.remoteAddress ?? '', resume, last)
  }

  function readThrottled(size: number): void {
    if (paused) wanted = true
    else read(size)
  }

  /** Discards a body that is never read. Node does so too, but its chunks would then bypass the throttle. */
  function throwAway(): void {
    message.removeAllListeners('data').resume()
  }
}

/** A client that sends up to this many at once never waits. */
const FEW = 64
