import { EGRESS_TICK_MS } from '../../base/limits.ts'

/** What must not take for ever. */
export interface Timed {
  /** Looks whether its time is up, and acts on it; `now` in milliseconds of the same clock as all of its times. */
  tick(now: number): void
  abort(): void
}

/**
 * One timer for everything in flight: a timer for each call costs more than the call has to spare. In return a
 * limit may be exceeded by one tick.
 */
export class Timekeeper {
  readonly #watched = new Set<Timed>()
  #timer: NodeJS.Timeout | null = null

  now(): number {
    return performance.now()
  }

  watch(it: Timed): void {
    this.#watched.add(it)
    // It does not keep the process alive: what is watched does.
    this.#timer ??= setInterval(this.#tick, EGRESS_TICK_MS).unref()
  }

  leave(it: Timed): void {
    this.#watched.delete(it)
  }

  abortAll(): void {
    for (const it of this.#watched) it.abort()
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  readonly #tick = (): void => {
    const now = this.now()
    for (const it of this.#watched) it.tick(now)
    if (this.#watched.size === 0) this.stop()
  }
}
