/**
 * Reports when the batch in flight takes too long. One timer watches successive batches: setting
 * and clearing a timer for each would cost more than all other work of a lone commit.
 */
export class CommitWatchdog {
  readonly waitMs: number
  readonly #begunAt: () => number | null
  readonly #onLate: () => void
  #timer: NodeJS.Timeout | null = null

  /** `begunAt` returns when the batch in flight began, by `performance.now()`; null if none is in flight. */
  constructor(waitMs: number, begunAt: () => number | null, onLate: () => void) {
    this.waitMs = waitMs
    this.#begunAt = begunAt
    this.#onLate = onLate
  }

  /** Call when a batch has begun. */
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

  /** If the event loop itself was blocked, the batch may have ended long ago, its reply still unread. */
  #lookOnceMore(begunAt: number): void {
    setImmediate(() => {
      if (this.#begunAt() === begunAt) this.#onLate()
    })
  }
}
