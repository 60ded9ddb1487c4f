import { EGRESS_TICK_MS } from '../../base/limits.ts'

/** What must not take for ever. */
export interface Timed {
  /** Its slot among those that the timekeeper watches; its own to write. */
  slot: number
  /** Looks whether its time is up, and acts on it; `now` in milliseconds of the same clock as all of its times. */
  tick(now: number): void
  abort(): void
}

/**
 * One timer for everything in flight: a timer for each call costs more than the call has to spare. In return a
 * limit may be exceeded by one tick.
 *
 * They are in an array, and whoever is last takes the slot of one that leaves. A set would be the thing, but as many come
 * and go as there are calls, and it makes itself anew each time as many have gone as are left. The old one knows the new
 * one and all who were in it: once one of them is in the old generation of the heap, so is every call from then on, and
 * with it all that it holds.
 */
export class Timekeeper {
  readonly #watched: Timed[] = []
  #timer: NodeJS.Timeout | null = null

  now(): number {
    return performance.now()
  }

  watch(it: Timed): void {
    it.slot = this.#watched.push(it) - 1
    // It does not keep the process alive: what is watched does.
    this.#timer ??= setInterval(this.#tick, EGRESS_TICK_MS).unref()
  }

  /** For one that is watched. */
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

  /** From the end, so that whoever takes the slot of one that leaves meanwhile has been seen to. */
  #each(see: (it: Timed) => void): void {
    for (let at = this.#watched.length - 1; at >= 0; at--) see(this.#watched[at]!)
  }
}
