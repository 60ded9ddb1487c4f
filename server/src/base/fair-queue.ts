/**
 * A fair queue: runs one task at a time, and serves the owners round-robin. However many tasks one owner adds, another waits for
 * at most one of each.
 */
export class FairQueue {
  /** Waiting tasks by owner; the owner served last is last. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #busy = false

  /** Runs `work` when its turn comes, and nothing else until it is settled; settles as it does. */
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

  /** Hands over to the next task without going idle in between, so that no newcomer can get ahead of it. */
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
