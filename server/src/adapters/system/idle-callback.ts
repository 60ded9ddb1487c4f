import { performance } from 'node:perf_hooks'

/**
 * Calls `work` once the event loop has been told of nothing for IDLE_MS: no request came, no thread and no disk
 * answered.
 *
 * With a store that flushes for many at once, that is while everybody waits for the disk, so that `work` takes
 * nobody's time. Under load without a gap it is not called: whoever cannot wait for ever has a time of their own.
 */
export function onIdle(work: () => void): void {
  let seen = eventsSeen()
  const look = (): void => {
    const events = eventsSeen()
    if (events === seen) return work()
    seen = events
    lookLater()
  }
  // After a long turn a timer comes before what there is to read.
  const lookLater = (): void => void setTimeout(() => setImmediate(look), IDLE_MS).unref()
  lookLater()
}

/**
 * Not a turn of the event loop: it has one between handing something to a thread and that thread's beginning, and
 * where both are on one core, who works then keeps the thread from it.
 */
const IDLE_MS = 1

/** How many events the loop has been told of so far. Source: nodejs.org, perf_hooks, uvMetricsInfo. */
function eventsSeen(): number {
  return performance.nodeTiming.uvMetricsInfo.events
}
