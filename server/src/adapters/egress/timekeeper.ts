import { EGRESS_TICK_MS } from '../../base/limits.ts'

/** Something with a time limit. */
export interface Timed {
  /** Its slot among the watched ones; only the timekeeper writes it. */
  slot: number
  /** Fails if its time is up. `now` is in milliseconds, of the same clock as all its times. */
  tick(now: number): void
  abort(): void
}

/**
 * One timer for every call in flight: a timer per call would cost too much. In return, limits may be exceeded by one
 * tick.
 *
 * Calls are kept in an array; when one leaves, the last one takes its slot. A Set is the obvious choice, but V8
 * rebuilds its table each time as many calls have left as remain, and the old table references the new one and all its
 * members. Once one table is in the old generation of the heap, every later call, and all it holds, is retained.
 */
export class Timekeeper {
  readonly #watched: Timed[] = []
  #timer: NodeJS.Timeout | null = null

  now(): number {
    return performance.now()
  }

  watch(it: Timed): void {
    it.slot = this.#watched.push(it) - 1
    // Watching does not keep the process alive; the watched sockets do.
    this.#timer ??= setInterval(this.#tick, EGRESS_TICK_MS).unref()
  }

  /** Stops watching a call that is watched. */
  leave({ slot }: Timed): void {
    const last = this.#watched.pop()!
    if (last.slot === slot) return
    this.#watched[slot] = last
    last.slot = slot
  }

  abortAll(): void {
    this.#each((it) => it.abort())
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  readonly #tick = (): void => {
    const now = this.now()
    this.#each((it) => it.tick(now))
    if (this.#watched.length === 0) this.stop()
  }

  /** Iterates from the end, so that a call which moves into a freed slot was visited already. */
  #each(see: (it: Timed) => void): void {
    for (let at = this.#watched.length - 1; at >= 0; at--) see(this.#watched[at]!)
  }
}
