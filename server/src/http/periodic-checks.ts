import type { Clock } from '../ports/clock.ts'

/** Runs checks every `ms` for as long as they are registered: all from one timer, so that a registration costs next to nothing. */
export class PeriodicChecks {
  readonly #clock: Pick<Clock, 'after'>
  readonly #ms: number
  readonly #checks = new Set<() => void>()
  #running = false

  constructor(clock: Pick<Clock, 'after'>, ms: number) {
    this.#clock = clock
    this.#ms = ms
  }

  /** Registers a check, which must not throw. Returns a function that removes it. */
  add(check: () => void): () => void {
    this.#checks.add(check)
    if (!this.#running) void this.#run()
    return () => void this.#checks.delete(check)
  }

  async #run(): Promise<void> {
    this.#running = true
    while (this.#checks.size > 0) {
      await this.#clock.after(this.#ms)
      for (const check of this.#checks) check()
    }
    this.#running = false
  }
}
