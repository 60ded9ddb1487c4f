import { LRUCache } from 'lru-cache'
import type { Principal } from '../base/access.ts'
import { IDENTITY_CACHE_ENTRIES_MAX, IDENTITY_CACHE_MS } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Clock } from '../ports/clock.ts'
import type { FoundPrincipal } from './resolve-principal.ts'

/**
 * Principals by the hashes of their keys, for IDENTITY_CACHE_MS, counted from the start of the look-up. A failure is never cached.
 * Decision 0006.
 */
export class IdentityCache {
  readonly #clock: Pick<Clock, 'now' | 'elapsed'>
  readonly #known = new LRUCache<string, KnownPrincipal>({ max: IDENTITY_CACHE_ENTRIES_MAX })
  readonly #shared = new Map<string, Promise<Principal>>()
  /** Counts invalidations. */
  #era = 0

  constructor(clock: Pick<Clock, 'now' | 'elapsed'>) {
    this.#clock = clock
  }

  get(name: string): Principal | undefined {
    const it = this.#known.get(name)
    return it !== undefined && this.#clock.elapsed() < it.until ? it.principal : undefined
  }

  /** Returns what `resolve` finds, and caches it. Rejects with `key_unknown` if it finds nothing, or a principal that has expired. */
  async lookUp(name: string, resolve: () => Promise<FoundPrincipal | null>): Promise<Principal> {
    const era = this.#era
    const from = this.#clock.elapsed()
    const found = await resolve()
    const livesMs = (found?.expiresAt ?? Infinity) - this.#clock.now()
    if (found === null || livesMs <= 0) {
      this.#known.delete(name)
      throw new ServiceError('key_unknown')
    }
    const { principal, lasting } = found
    const until = Math.min(from + IDENTITY_CACHE_MS, this.#clock.elapsed() + livesMs)
    // An answer to a look-up that began before a change may be stale: it serves the requests that waited for it and is not
    // cached.
    if (era === this.#era && lasting) this.#known.set(name, { principal, until })
    return principal
  }

  /** Like lookUp(), but requests that arrive during a look-up share its answer. */
  lookUpShared(name: string, resolve: () => Promise<FoundPrincipal | null>): Promise<Principal> {
    const shared = this.#shared.get(name)
    if (shared !== undefined) return shared
    const answer = this.lookUp(name, resolve).finally(() => {
      if (this.#shared.get(name) === answer) this.#shared.delete(name)
    })
    this.#shared.set(name, answer)
    return answer
  }

  /** Forgets every principal, and what look-ups in progress will find. */
  invalidate(): void {
    this.#era++
    this.#known.clear()
    this.#shared.clear()
  }
}

interface KnownPrincipal {
  readonly principal: Principal
  /** In the clock's elapsed milliseconds. */
  readonly until: number
}
