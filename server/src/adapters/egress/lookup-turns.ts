import {
  EGRESS_LOOKUPS_MAX,
  EGRESS_LOOKUPS_OF_ONE_MAX,
  EGRESS_LOOKUPS_WAITING_MAX,
} from '../../base/limits.ts'

/**
 * Who may look up a name next: those who wait have their turns one owner after the other, and never has one owner all
 * of them, so that slow names of one do not block the names of others.
 */
export class LookupTurns {
  /** The owners whose turn it is. */
  readonly #running: string[] = []
  /** What waits, by owner; whoever had a turn last is last. */
  readonly #waiting = new Map<string, Set<() => void>>()

  /**
   * Calls `begin` when it is the owner's turn, which lasts until end(). Returns how to stop waiting; null when too
   * many of the owner's wait already.
   */
  take(owner: string, begin: () => void): (() => void) | null {
    const line = this.#waiting.get(owner) ?? new Set()
    if (line.size >= EGRESS_LOOKUPS_WAITING_MAX) return null
    line.add(begin)
    this.#waiting.set(owner, line)
    this.#beginNext()
    return () => {
      if (line.delete(begin) && line.size === 0) this.#waiting.delete(owner)
    }
  }

  end(owner: string): void {
    this.#running.splice(this.#running.indexOf(owner), 1)
    this.#beginNext()
  }

  #beginNext(): void {
    while (this.#running.length < EGRESS_LOOKUPS_MAX) {
      const next = this.#waiting.entries().find(([owner]) => this.#mayRun(owner))
      if (next === undefined) return
      const [owner, line] = next
      const [begin] = line
      line.delete(begin!)
      this.#waiting.delete(owner)
      if (line.size > 0) this.#waiting.set(owner, line)
      this.#running.push(owner)
      begin!()
    }
  }

  #mayRun(owner: string): boolean {
    return this.#running.filter((it) => it === owner).length < EGRESS_LOOKUPS_OF_ONE_MAX
  }
}
