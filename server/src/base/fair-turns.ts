/**
 * One turn at a time, given to owners one after the other: however much one of them asks for, another waits for one turn
 * of each at most.
 */
export class FairTurns {
  /** What waits, by owner; whoever had a turn last is last. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #taken = false

  /** Does `work` when it is the owner's turn, which lasts until it is settled; settles as it does. */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    if (this.#taken) await this.#turnOf(owner)
    this.#taken = true
    try {
      return await work()
    } finally {
      this.#pass()
    }
  }

  #turnOf(owner: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const line = this.#waiting.get(owner)
    if (line === undefined) this.#waiting.set(owner, [resolve])
    else line.push(resolve)
    return promise
  }

  /** To whoever is next, without letting go of it: nobody who comes meanwhile is quicker. */
  #pass(): void {
    const next = this.#waiting.entries().next().value
    this.#taken = next !== undefined
    if (next === undefined) return
    const [owner, line] = next
    const begin = line.shift()!
    this.#waiting.delete(owner)
    if (line.length > 0) this.#waiting.set(owner, line)
    begin()
  }
}
