import { KiB, READ_CHUNKS_PER_TICK } from './limits.ts'

/**
 * A read throttle: bounds how much data from many connections is read in one tick of the event loop. It counts chunks, since a
 * small one costs as much as one of some KiB, and a single read of a connection may hold ten thousand of a byte.
 *
 * When the budget of a tick is spent, readers wait for the next tick, owner by owner: however many connections one owner has,
 * another's waits for at most one of each. Data read far beyond the budget, since it had arrived already, is a debt: reading
 * pauses for as long as it took.
 */
export class ReadThrottle {
  readonly #clock: TickClock
  #left = READ_CHUNKS_PER_TICK
  #begun = false
  /** Waiting readers by owner; the owner served last is last. */
  readonly #waiting = new Map<string, { resume: () => void; chunks: number }[]>()

  constructor(clock: TickClock) {
    this.#clock = clock
  }

  get isExhausted(): boolean {
    return this.#left <= 0
  }

  /** Counts a chunk of `bytes` that was read. */
  count(bytes: number): void {
    this.spend(1 + bytes / BYTES_LIKE_A_CHUNK)
  }

  /** Counts work that cost as much as this many small chunks; negative if too many had been reserved. */
  spend(chunks: number): void {
    this.#left -= chunks
    this.#begin()
  }

  /** Calls `resume` in a later tick, and reserves `chunks` of that tick's budget for it, whether it reads them at once or not. */
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
    // What was reserved counts in this tick only, even if nothing else is read.
    if (this.isExhausted || this.#waiting.size > 0) this.#begin()
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

/** The part of a clock that a throttle needs: see Clock. */
export interface TickClock {
  yield(): Promise<void>
  after(ms: number): Promise<void>
}

/** Approximate time per chunk. */
const CHUNK_MS = 0.0025

/** The longest pause, however much was read: small readers wait for it to end, too. */
const DEBT_PAUSE_MS_MAX = 250

/** This many bytes cost as much as another chunk. */
const BYTES_LIKE_A_CHUNK = 4 * KiB
