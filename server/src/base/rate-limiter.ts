import { LRUCache } from 'lru-cache'

/** The amount that one request fills a bucket by; `perMinute` times as much drains from it in a minute. */
const MINUTE_MS = 60_000

/**
 * Limits the requests of each owner with a token bucket: as many at once as a minute has, and then as many as a minute has, evenly.
 *
 * So of one owner, within any `t` milliseconds, it admits at most `perMinute * (1 + t / 60,000)` requests: twice the limit in a minute
 * that follows a quiet one, and exactly the limit from then on. A refused request takes nothing, so repeating it does not
 * lengthen the wait.
 *
 * Times are whole milliseconds, and amounts whole numbers: nothing is rounded, whatever the limit.
 */
export class RateLimiter {
  readonly #perMinute: number
  readonly #buckets: LRUCache<string, RateBucket>

  /** `ownersMax` bounds the memory: of more owners, those that were quiet for longest are forgotten, as if they had a full minute. */
  constructor(perMinute: number, ownersMax: number) {
    this.#perMinute = perMinute
    this.#buckets = new LRUCache({ max: ownersMax })
  }

  /** Returns the milliseconds until `owner` may make a request: 0 if it may now. `now` is in the clock's elapsed milliseconds. */
  waitMs(owner: string, now: number): number {
    const bucket = this.#buckets.get(owner)
    if (bucket === undefined) return 0
    const excess = this.#level(bucket, now) + MINUTE_MS - MINUTE_MS * this.#perMinute
    return excess <= 0 ? 0 : Math.ceil(excess / this.#perMinute)
  }

  /** Counts a request of `owner`, for which waitMs() has just returned 0. */
  take(owner: string, now: number): void {
    const bucket = this.#buckets.get(owner)
    if (bucket === undefined) {
      this.#buckets.set(owner, { level: MINUTE_MS, at: Math.floor(now) })
      return
    }
    bucket.level = this.#level(bucket, now) + MINUTE_MS
    bucket.at = Math.floor(now)
  }

  #level({ level, at }: RateBucket, now: number): number {
    return Math.max(0, level - (Math.floor(now) - at) * this.#perMinute)
  }
}

interface RateBucket {
  level: number
  /** When it had that level. */
  at: number
}
