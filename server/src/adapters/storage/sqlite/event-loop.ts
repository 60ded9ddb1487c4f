import type { SliceClock } from '../../../base/time-slice.ts'

/** The event loop that reads here hold up, to read in time slices. */
export const EVENT_LOOP: SliceClock = {
  elapsed: () => performance.now(),
  yield: () => new Promise((resolve) => void setImmediate(resolve)),
}
