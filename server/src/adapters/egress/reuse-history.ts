import { EGRESS_POOLS_MAX, EGRESS_CLOSE_MEMORY_MS } from '../../base/limits.ts'

/**
 * When destinations last closed a connection soon after a response, by owner and destination.
 *
 * A server may close an idle connection at any time, and the close can cross the next request on its way: the caller then
 * cannot know whether that was carried out (RFC 9112, section 9.3.1).
 */
export class ReuseHistory {
  /** Times in milliseconds; the latest comes last. */
  readonly #closes = new Map<string, number>()

  noteClose(key: string, now: number): void {
    this.#closes.delete(key)
    this.#closes.set(key, now)
    const [oldest] = this.#closes.keys()
    if (this.#closes.size > EGRESS_POOLS_MAX) this.#closes.delete(oldest!)
  }

  /** Whether there was no such close within EGRESS_CLOSE_MEMORY_MS. */
  isSteady(key: string, now: number): boolean {
    const at = this.#closes.get(key)
    return at === undefined || now - at >= EGRESS_CLOSE_MEMORY_MS
  }
}
