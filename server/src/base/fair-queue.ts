/**
 * A fair queue: one unit of work at a time, and the owners round-robin. However much one of them asks for, another waits for
 * one of each at most.
 */
export class FairQueue {
  /** What waits, by owner; the owner served last is last. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #busy = false

  /** Does `work` when the queue comes to it, and nothing else until it is settled; settles as it does. */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    if (this.#busy) await this.#enqueue(owner)
    this.#busy = true
    try {
      return await work()
    } finally {
      this.#startNext()
    }
  }

  #enqueue(owner: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const queue = this.#waiting.get(owner)
    if (queue === undefined) this.#waiting.set(owner, [resolve])
    else queue.push(resolve)
    return promise
  }

  /** To whoever is next, without letting go of it: nobody who comes meanwhile is quicker. */
  #startNext(): void {
    const next = this.#waiting.entries().next().value
    this.#busy = next !== undefined
    if (next === undefined) return
    const [owner, queue] = next
    const begin = queue.shift()!
    this.#waiting.delete(owner)
    if (queue.length > 0) this.#waiting.set(owner, queue)
    begin()
  }
}
