import { SLICE_MS_MAX } from '../base/limits.ts'
import type { Clock } from '../world/clock.ts'

/**
 * Does `work` for 0 to `count - 1`, in order, letting others have a turn every SLICE_MS_MAX.
 *
 * A payload of thousands would otherwise hold the event loop, and everybody else, until it is done.
 */
export async function inSlices(
  clock: Clock,
  count: number,
  work: (index: number) => void | Promise<void>,
): Promise<void> {
  let turn = count > LOOK_EVERY ? clock.elapsed() : 0
  for (let index = 0; index < count; index++) {
    const waiting = work(index)
    if (waiting !== undefined) await waiting
    if (index % LOOK_EVERY !== LOOK_EVERY - 1 || clock.elapsed() - turn < SLICE_MS_MAX) continue
    await clock.yield()
    turn = clock.elapsed()
  }
}

/** Looking at the clock costs as much as a little work. */
const LOOK_EVERY = 8
