import { performance } from 'node:perf_hooks'

/**
 * Calls `work` once the event loop has received no event for IDLE_MS: no request, and no answer
 * from a thread or the disk.
 *
 * With a store that flushes for many commits at once, that is while all requests wait for the disk,
 * so `work` delays none. Under continuous load `work` is never called: a caller with a deadline
 * needs a timer of its own.
 */
export function onIdle(work: () => void): void {
  let seen = eventsSeen()
  const look = (): void => {
    const events = eventsSeen()
    if (events === seen) return work()
    seen = events
    lookLater()
  }
  // After a long iteration, timers run before pending reads.
  const lookLater = (): void => void setTimeout(() => setImmediate(look), IDLE_MS).unref()
  lookLater()
}

/**
 * One loop iteration would not be enough: an iteration passes between handing work to a thread and
 * the start of that thread, and on a single core, `work` would then keep the thread from running.
 */
const IDLE_MS = 1

/** Returns how many events the loop has received. Source: nodejs.org, perf_hooks, uvMetricsInfo. */
function eventsSeen(): number {
  return performance.nodeTiming.uvMetricsInfo.events
}
