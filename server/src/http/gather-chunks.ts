import type { IncomingMessage } from 'node:http'
import { BytePile } from '../base/byte-pile.ts'
import type { ReadThrottle } from '../base/read-throttle.ts'
import type { Clock } from '../ports/clock.ts'

/**
 * Has those chunks of a body that came together arrive together, and a connection that says many small ones at once be
 * read again when the throttle lets it, also where nobody wants the body.
 *
 * Node makes an event of every chunk, and in 64 KiB, which it reads at once, there may be ten thousand: each on its own
 * way to a store or a destination, they hold up everybody else for a second. Call it before any of the body was read.
 */
export function gatherChunks(
  message: IncomingMessage,
  clock: Pick<Clock, 'yield'>,
  throttle: ReadThrottle,
): void {
  if (message.headers['transfer-encoding'] === undefined) return
  const push = message.push.bind(message)
  const read = message._read.bind(message)
  let pile = new BytePile()
  let chunks = 0
  /** Chunks that the throttle has been told of before they came. */
  let foreseen = 0
  let paused = false
  /** Whether more was asked for meanwhile. */
  let wanted = false

  Object.assign(message, { push: take, _read: readThrottled, _dump: throwAway })

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

  /** What Node does with a body that was not asked for, but that Node then takes its chunks past everybody. */
  function throwAway(): void {
    message.removeAllListeners('data').resume()
  }
}

/** Who sends so many at once is never made to wait. */
const FEW = 64
