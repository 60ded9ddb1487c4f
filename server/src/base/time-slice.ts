import { YIELD_AFTER_MS } from './limits.ts'

/** The part of a clock that a slice needs: see Clock. */
export interface SliceClock {
  elapsed(): number
  yield(): Promise<void>
}

/**
 * Time slicing: lets long work yield to the event loop whenever it has run for a while, so that it does not block other requests.
 * Time in which the event loop ran something else, because the work waited, counts as well: yielding then costs little.
 */
export class TimeSlice {
  readonly #clock: SliceClock
  readonly #ms: number
  readonly #lookEvery: number
  #piecesLeft: number
  #resumedAt: number

  /** Looks at the clock only after every `lookEvery` pieces: worth it if a piece is about as quick as a look. */
  constructor(clock: SliceClock, { ms = YIELD_AFTER_MS, lookEvery = 1 } = {}) {
    this.#clock = clock
    this.#ms = ms
    this.#lookEvery = lookEvery
    this.#piecesLeft = lookEvery
    this.#resumedAt = clock.elapsed()
  }

  /** Call this after each piece of work. Returns undefined if the work may go on; otherwise resolves once other work has run. */
  yieldIfDue(): Promise<void> | undefined {
    this.#piecesLeft -= 1
    if (this.#piecesLeft > 0) return undefined
    this.#piecesLeft = this.#lookEvery
    if (this.#clock.elapsed() - this.#resumedAt < this.#ms) return undefined
    return this.#clock.yield().then(this.#resume)
  }

  readonly #resume = (): void => {
    this.#resumedAt = this.#clock.elapsed()
  }
}

/** Runs `work` to its end, which yields after each piece, in time slices. Returns its result. */
export async function runSliced<Result>(
  clock: SliceClock,
  work: Generator<void, Result>,
): Promise<Result> {
  const slice = new TimeSlice(clock)
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
    const yielded = slice.yieldIfDue()
    if (yielded !== undefined) await yielded
  }
}
