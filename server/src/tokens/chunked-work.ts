import { SHORT_LIST_YIELD_AFTER_MS, YIELD_AFTER_MS } from '../base/limits.ts'
import { TimeSlice } from '../base/time-slice.ts'
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
  const ms = count > SHORT_MAX ? YIELD_AFTER_MS : SHORT_LIST_YIELD_AFTER_MS
  const slice = count < LOOK_EVERY ? null : new TimeSlice(clock, { ms, lookEvery: LOOK_EVERY })
  for (let index = 0; index < count; index++) {
    const working = work(index)
    const waiting = working === undefined ? slice?.yieldIfDue() : working
    if (waiting !== undefined) return waiting.then(() => runSlices(clock, count, work, index + 1))
  }
  return undefined
}

async function runSlices(
  clock: Clock,
  count: number,
  work: (index: number) => void | Promise<void>,
  from: number,
): Promise<void> {
  const slice = new TimeSlice(clock, { lookEvery: LOOK_EVERY })
  for (let index = from; index < count; index++) {
    const working = work(index)
    if (working !== undefined) await working
    const yielded = slice.yieldIfDue()
    if (yielded !== undefined) await yielded
  }
}

/** Lists this short mostly finish in about a millisecond, so yielding would cost more than it gains. */
const SHORT_MAX = 128

/** Reading the clock costs about as much as a small piece of work. */
const LOOK_EVERY = 4
