import { SLICE_MS_MAX } from '../base/limits.ts'
import type { Clock } from '../world/clock.ts'

/**
 * Does `work` for 0 to `count - 1`, in order; when there are many, others have a turn every SLICE_MS_MAX.
 *
 * A payload of thousands would otherwise hold the event loop, and everybody else, until it is done.
 */
export async function inSlices(
  clock: Clock,
  count: number,
  work: (index: number) => void | Promise<void>,
): Promise<void> {
  const long = count > SHORT_MAX
  let turn = long ? clock.elapsed() : 0
  for (let index = 0; index < count; index++) {
    const waiting = work(index)
    if (waiting !== undefined) await waiting
    if (!long || index % LOOK_EVERY !== LOOK_EVERY - 1) continue
    if (clock.elapsed() - turn < SLICE_MS_MAX) continue
    await clock.yield()
    turn = clock.elapsed()
  }
}

/** So few are done in about a millisecond; to stop in between would cost more than it gives. */
const SHORT_MAX = 128

/** Looking at the clock costs as much as a little work. */
const LOOK_EVERY = 8
