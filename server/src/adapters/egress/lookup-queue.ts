import {
  EGRESS_LOOKUPS_MAX,
  EGRESS_LOOKUPS_OF_ONE_MAX,
  EGRESS_LOOKUPS_WAITING_MAX,
} from '../../base/limits.ts'

/**
 * The fair queue of name lookups: serves owners round-robin and never gives one owner every slot, so that one owner's
 * slow names do not block the names of others.
 */
export class LookupQueue {
  /** Owners of the lookups in flight, once per lookup. */
  readonly #running: string[] = []
  /** Queued lookups by owner; the owner served last comes last. */
  readonly #waiting = new Map<string, Set<() => void>>()

  /**
   * Calls `begin` when the owner may look up a name; end the lookup with release(). Returns a function that leaves the
   * queue, or null when the owner has too many lookups queued.
   */
  acquire(owner: string, begin: () => void): (() => void) | null {
    const queue = this.#waiting.get(owner) ?? new Set()
    if (queue.size >= EGRESS_LOOKUPS_WAITING_MAX) return null
    queue.add(begin)
    this.#waiting.set(owner, queue)
    this.#beginNext()
    return () => {
      if (queue.delete(begin) && queue.size === 0) this.#waiting.delete(owner)
    }
  }

  release(owner: string): void {
    this.#running.splice(this.#running.indexOf(owner), 1)
    this.#beginNext()
  }

  #beginNext(): void {
    while (this.#running.length < EGRESS_LOOKUPS_MAX) {
      const next = this.#waiting.entries().find(([owner]) => this.#mayRun(owner))
      if (next === undefined) return
      const [owner, queue] = next
      const [begin] = queue
      queue.delete(begin!)
      this.#waiting.delete(owner)
      if (queue.size > 0) this.#waiting.set(owner, queue)
      this.#running.push(owner)
      begin!()
    }
  }

  #mayRun(owner: string): boolean {
    return this.#running.filter((it) => it === owner).length < EGRESS_LOOKUPS_OF_ONE_MAX
  }
}
