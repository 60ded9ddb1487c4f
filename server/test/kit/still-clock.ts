import type { Clock } from '../../src/world/clock.ts'

/** A clock that stands until it is set. Both of its times move together. */
export class StillClock implements Clock {
  #now: number
  readonly #start: number

  constructor(now: number = Date.UTC(2026, 0, 1)) {
    this.#now = now
    this.#start = now
  }

  now(): number {
    return this.#now
  }

  elapsed(): number {
    return this.#now - this.#start
  }

  async yield(): Promise<void> {}

  set(now: number): void {
    this.#now = now
  }

  pass(ms: number): void {
    this.#now += ms
  }
}
