import { KiB, READ_CHUNKS_A_TURN } from './limits.ts'

/**
 * How much of what comes in by many connections is read in one turn of the event loop, counted in chunks: a small one costs
 * as much as one of some KiB, and what a connection has to say at once may be ten thousand of a byte.
 *
 * When a turn is over whoever wants to read waits for the next, one owner after the other: however many connections one of
 * them has, another's waits for one of each at most. Of what was read far beyond a turn, since it was there, as long a rest is
 * taken as it took.
 */
export class ReadingTurns {
  readonly #clock: TurnClock
  #left = READ_CHUNKS_A_TURN
  #begun = false
  /** What goes on reading, by owner; whoever had a turn last is last. */
  readonly #waiting = new Map<string, { goOn: () => void; chunks: number }[]>()

  constructor(clock: TurnClock) {
    this.#clock = clock
  }

  get isOver(): boolean {
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

  /** Calls `goOn` in a later turn, of which it is to have so many chunks whether it reads them at once or not. */
  wait(owner: string, goOn: () => void, chunks = 0): void {
    const waiting = { goOn, chunks }
    const line = this.#waiting.get(owner)
    if (line === undefined) this.#waiting.set(owner, [waiting])
    else line.push(waiting)
    this.#begin()
  }

  #begin(): void {
    if (this.#begun) return
    this.#begun = true
    void this.#clock.yield().then(this.#next)
  }

  readonly #next = (): void => {
    const beyond = -this.#left
    if (beyond > READ_CHUNKS_A_TURN) {
      this.#left = 0
      void this.#clock.after(Math.min(beyond * CHUNK_MS, REST_MS_MAX)).then(this.#next)
      return
    }
    this.#begun = false
    this.#left = READ_CHUNKS_A_TURN
    while (!this.isOver && this.#waiting.size > 0) this.#letOne()
    if (this.#waiting.size > 0) this.#begin()
  }

  #letOne(): void {
    const [owner, line] = this.#waiting.entries().next().value!
    const { goOn, chunks } = line.shift()!
    this.#left -= chunks
    this.#waiting.delete(owner)
    if (line.length > 0) this.#waiting.set(owner, line)
    goOn()
  }
}

/** What of a clock it takes to share out turns: see Clock. */
export interface TurnClock {
  yield(): Promise<void>
  after(ms: number): Promise<void>
}

/** How long one takes, more or less. */
const CHUNK_MS = 0.0025

/** However much was read: those who have little to say wait for the rest to be over, too. */
const REST_MS_MAX = 250

/** So many bytes more cost what a chunk does. */
const BYTES_LIKE_A_CHUNK = 4 * KiB
