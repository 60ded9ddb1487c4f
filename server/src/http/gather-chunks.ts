import type { IncomingMessage } from 'node:http'
import { BytePile } from '../base/byte-pile.ts'
import type { ReadingTurns } from '../base/reading-turns.ts'
import type { Clock } from '../world/clock.ts'

/**
 * Has those chunks of a body that came together arrive together, and a connection that says many small ones at once be
 * read again when there is a turn for it, also where nobody wants the body.
 *
 * Node makes an event of every chunk, and in 64 KiB, which it reads at once, there may be ten thousand: each on its own
 * way to a store or a destination, they hold up everybody else for a second. Call it before any of the body was read.
 */
export function gatherChunks(
  message: IncomingMessage,
  clock: Pick<Clock, 'yield'>,
  turns: ReadingTurns,
): void {
  if (message.headers['transfer-encoding'] === undefined) return
  const push = message.push.bind(message)
  const read = message._read.bind(message)
  let pile = new BytePile()
  let chunks = 0
  /** Chunks that the turns have been told of before they came. */
  let foreseen = 0
  let resting = false
  /** Whether more was asked for meanwhile. */
  let wanted = false

  Object.assign(message, { push: take, _read: readInTurn, _dump: throwAway })

  /** Returns whether to read on, as push() does. */
  function take(chunk: Buffer | null): boolean {
    if (chunk === null) {
      pass()
      return push(null)
    }
    if (chunks === 0) void clock.yield().then(pass)
    chunks += 1
    if (foreseen > 0) foreseen -= 1
    else turns.count(chunk.length)
    pile.add(chunk)
    return chunks <= FEW && message.readableLength + pile.length < message.readableHighWaterMark
  }

  function pass(): void {
    if (chunks === 0) return
    const whole = pile.whole()
    if (chunks > FEW && turns.isOver) rest(chunks)
    pile = new BytePile()
    chunks = 0
    push(whole)
  }

  function rest(last: number): void {
    resting = true
    message.socket.pause()
    const goOn = (): void => {
      resting = false
      foreseen = last
      if (wanted) read(0)
      wanted = false
    }
    turns.wait(message.socket.remoteAddress ?? '', goOn, last)
  }

  function readInTurn(size: number): void {
    if (resting) wanted = true
    else read(size)
  }

  /** What Node does with a body that was not asked for, but that Node then takes its chunks past everybody. */
  function throwAway(): void {
    message.removeAllListeners('data').resume()
  }
}

/** Who sends so many at once is never made to wait. */
const FEW = 64
