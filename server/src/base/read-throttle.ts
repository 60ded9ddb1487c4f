import { KiB, READ_CHUNKS_PER_TICK } from './limits.ts'

/**
 * A read throttle: bounds how much of what comes in by many connections is read in one tick of the event loop, counted in
 * chunks: a small one costs as much as one of some KiB, and what a connection has to say at once may be ten thousand of a byte.
 *
 * When the budget of a tick is spent whoever wants to read waits for the next, one owner after the other: however many connections one of
 * them has, another's waits for one of each at most. What was read far beyond the budget, since it was there, is
 * a debt: reading pauses for as long as it took.
 */
export class ReadThrottle {
  readonly #clock: TickClock
  #left = READ_CHUNKS_PER_TICK
  #begun = false
  /** What goes on reading, by owner; whoever had a turn last is last. */
  readonly #waiting = new Map<string, { resume: () => void; chunks: number }[]>()

  constructor(clock: TickClock) {
    this.#clock = clock
  }

  get isExhausted(): boolean {
    return this.#left <= 0
  }

  /** Takes note of a chunk that was read, of so many bytes. */
  count(bytes: number): void {
    this.spend(1 + bytes / BYTES_LIKE_A_CHUNK)
  }

  /** Takes note of what cost as much as so many small chunks; fewer than none where too many had been foreseen. */
  spend(chunks: number): void {
    this.#left -= chunks
    this.#begin()
  }

  /** Calls `resume` in a later tick, of whose budget it is to have so many chunks whether it reads them at once or not. */
  wait(owner: string, resume: () => void, chunks = 0): void {
    const waiting = { resume: resume, chunks }
    const queue = this.#waiting.get(owner)
    if (queue === undefined) this.#waiting.set(owner, [waiting])
    else queue.push(waiting)
    this.#begin()
  }

  #begin(): void {
    if (this.#begun) return
    this.#begun = true
    void this.#clock.yield().then(this.#next)
  }

  readonly #next = (): void => {
    const debt = -this.#left
    if (debt > READ_CHUNKS_PER_TICK) {
      this.#left = 0
      void this.#clock.after(Math.min(debt * CHUNK_MS, DEBT_PAUSE_MS_MAX)).then(this.#next)
      return
    }
    this.#begun = false
    this.#left = READ_CHUNKS_PER_TICK
    while (!this.isExhausted && this.#waiting.size > 0) this.#resumeOne()
    if (this.#waiting.size > 0) this.#begin()
  }

  #resumeOne(): void {
    const [owner, queue] = this.#waiting.entries().next().value!
    const { resume, chunks } = queue.shift()!
    this.#left -= chunks
    this.#waiting.delete(owner)
    if (queue.length > 0) this.#waiting.set(owner, queue)
    resume()
  }
}

/** What of a clock a throttle needs: see Clock. */
export interface TickClock {
  yield(): Promise<void>
  after(ms: number): Promise<void>
}

/** How long one takes, more or less. */
const CHUNK_MS = 0.0025

/** However much was read: those who have little to say wait for the pause to end, too. */
const DEBT_PAUSE_MS_MAX = 250

/** So many bytes more cost what a chunk does. */
const BYTES_LIKE_A_CHUNK = 4 * KiB
