/**
 * Tells when what is under way has been so for too long. One timer watches many, one after the other: to set one
 * for each, and to take it away again, is more than a lone commit has to do besides.
 */
export class CommitWatchdog {
  readonly waitMs: number
  readonly #begunAt: () => number | null
  readonly #onLate: () => void
  #timer: NodeJS.Timeout | null = null

  /** `begunAt` is when it was begun, by `performance.now()`; null when nothing is under way. */
  constructor(waitMs: number, begunAt: () => number | null, onLate: () => void) {
    this.waitMs = waitMs
    this.#begunAt = begunAt
    this.#onLate = onLate
  }

  /** To be called when something has begun. */
  begin(): void {
    this.#lookIn(this.waitMs)
  }

  #lookIn(ms: number): void {
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      const begunAt = this.#begunAt()
      if (begunAt === null) return
      const left = begunAt + this.waitMs - performance.now()
      if (left > 0) this.#lookIn(left)
      else this.#lookOnceMore(begunAt)
    }, ms).unref()
  }

  /** Where it was the event loop that was held up, it may have ended long ago, unheard. */
  #lookOnceMore(begunAt: number): void {
    setImmediate(() => {
      if (this.#begunAt() === begunAt) this.#onLate()
    })
  }
}
