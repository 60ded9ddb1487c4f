import type { Clock } from '../../ports/clock.ts'

/** The machine's clock. */
export class SystemClock implements Clock {
  now(): number {
    return Date.now()
  }

  elapsed(): number {
    return performance.now()
  }

  yield(): Promise<void> {
    // Neither a microtask nor nextTick: both run before waiting sockets are served.
    return new Promise((resolve) => setImmediate(resolve))
  }

  after(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms).unref())
  }
}
