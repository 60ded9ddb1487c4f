import { TICK_BATCH_MAX } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'

let turn: Promise<void> | null = null
/** How many wait for it. */
let count = 0

/**
 * Resolves once the event loop has read every request that is there, for all of them at once; where they are more than
 * TICK_BATCH_MAX, for so many in each turn.
 *
 * Then one kind of work is done for many requests in a row, and what the processor needs for it is at hand
 * for all but the first: under load this halves what a request costs. A single one waits for nobody.
 */
export function joinTickBatch(clock: Pick<Clock, 'yield'>): Promise<void> {
  if (turn === null) turn = ended(clock.yield())
  else if (count === TICK_BATCH_MAX) turn = ended(turn.then(() => clock.yield()))
  count += 1
  return turn
}

function ended(yielded: Promise<void>): Promise<void> {
  count = 0
  const own = yielded.then(() => {
    if (turn === own) turn = null
  })
  return own
}
