import { SHORT_LIST_YIELD_AFTER_MS, YIELD_AFTER_MS } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'

/**
 * Calls `work` for 0 to `count - 1`, in order. A long list yields to the event loop every YIELD_AFTER_MS; a short one
 * starts to yield only after it has taken SHORT_LIST_YIELD_AFTER_MS. Returns undefined if the work finished synchronously,
 * as most short lists do.
 *
 * Without yielding, a payload of thousands would block every other request until it is done.
 */
export function inChunks(
  clock: Clock,
  count: number,
  work: (index: number) => void | Promise<void>,
): Promise<void> | undefined {
  if (count > SHORT_MAX) return runYielding(clock, count, work)
  const begun = count < LOOK_EVERY ? 0 : clock.elapsed()
  for (let index = 0; index < count; index++) {
    let waiting = work(index)
    if (
      waiting === undefined &&
      isLook(index) &&
      clock.elapsed() - begun > SHORT_LIST_YIELD_AFTER_MS
    ) {
      waiting = clock.yield()
    }
    if (waiting !== undefined) return waiting.then(() => runYielding(clock, count, work, index + 1))
  }
  return undefined
}

async function runYielding(
  clock: Clock,
  count: number,
  work: (index: number) => void | Promise<void>,
  from = 0,
): Promise<void> {
  let resumedAt = clock.elapsed()
  for (let index = from; index < count; index++) {
    const waiting = work(index)
    if (waiting !== undefined) await waiting
    if (!isLook(index) || clock.elapsed() - resumedAt < YIELD_AFTER_MS) continue
    await clock.yield()
    resumedAt = clock.elapsed()
  }
}

/** Lists this short mostly finish in about a millisecond, so yielding would cost more than it gains. */
const SHORT_MAX = 128

/** Reading the clock costs about as much as a small piece of work. */
const LOOK_EVERY = 4

function isLook(index: number): boolean {
  return index % LOOK_EVERY === LOOK_EVERY - 1
}
