import type { Clock } from '../../ports/clock.ts'

/** The machine's own clock. */
export class SystemClock implements Clock {
  now(): number {
    return Date.now()
  }

  elapsed(): number {
    return performance.now()
  }

  yield(): Promise<void> {
    // Not a microtask and not nextTick: both run before the sockets that are waiting.
    return new Promise((resolve) => setImmediate(resolve))
  }

  after(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms).unref())
  }
}
