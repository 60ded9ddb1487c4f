import { SHORT_LIST_YIELD_AFTER_MS, YIELD_AFTER_MS } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'

/**
 * Does `work` for 0 to `count - 1`, in order; when there are many, others have a turn every YIELD_AFTER_MS, and
 * when there are few but they take longer than SHORT_LIST_YIELD_AFTER_MS, from then on as well. Returns undefined when it is
 * done already, which a few mostly are.
 *
 * A payload of thousands would otherwise hold the event loop, and everybody else, until it is done.
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

/** So few are mostly done in about a millisecond; to stop in between would cost more than it gives. */
const SHORT_MAX = 128

/** Looking at the clock costs as much as a little work. */
const LOOK_EVERY = 4

function isLook(index: number): boolean {
  return index % LOOK_EVERY === LOOK_EVERY - 1
}
