import { LRUCache } from 'lru-cache'
import { EGRESS_CLOSE_MEMORY_MS, EGRESS_CLOSES_MAX } from '../../base/limits.ts'

/**
 * When destinations last closed a connection soon after a response, by owner and destination. No owner can learn about
 * another one's, or push them out.
 *
 * A server may close an idle connection at any time, and the close can cross the next request on its way: the caller then
 * cannot know whether that was carried out (RFC 9112, section 9.3.1).
 */
export class ReuseHistory {
  /** Times in milliseconds, by owner, the latest last, and destination. */
  readonly #closes = new Map<string, LRUCache<string, number>>()

  noteClose(owner: string, destination: string, now: number): void {
    this.#forget(now)
    const closes =
      this.#closes.get(owner) ?? new LRUCache<string, number>({ max: EGRESS_CLOSES_MAX })
    this.#closes.delete(owner)
    this.#closes.set(owner, closes)
    closes.set(destination, now)
  }

  /** Whether there was no such close within EGRESS_CLOSE_MEMORY_MS. */
  isSteady(owner: string, destination: string, now: number): boolean {
    const at = this.#closes.get(owner)?.peek(destination)
    return at === undefined || now - at >= EGRESS_CLOSE_MEMORY_MS
  }

  /** Drops owners whose last close is too long ago to matter; they come first. */
  #forget(now: number): void {
    for (const [owner, closes] of this.#closes) {
      const [last] = closes.values()
      if (now - last! < EGRESS_CLOSE_MEMORY_MS) return
      this.#closes.delete(owner)
    }
  }
}
