import { LRUCache } from 'lru-cache'
import { FairSemaphore } from '../../base/fair-semaphore.ts'
import {
  EGRESS_DIALLED_HOSTS_MAX,
  EGRESS_DIALS_AT_ONCE,
  EGRESS_DIALS_PER_S,
  EGRESS_FAILED_DIALS,
  EGRESS_FAILED_DIALS_OF_HOST,
  EGRESS_TUNNELS_MAX,
  EGRESS_TUNNELS_OF_ONE_MAX,
} from '../../base/limits.ts'
import { EgressLimitReached } from '../../ports/egress.ts'

/** One tunnel, from before its name is looked up until it is closed. */
export interface TunnelLease {
  /** Call when it failed, or was given up before it was open. */
  noteFailure(): void
  /** Call once, when it is closed or will never be open. */
  release(): void
}

/**
 * Limits of tunnels: how many one owner and all have open, or are opening, and how often one owner dials a host.
 *
 * Failures have limits of their own, far lower: they are what port scans and floods of half-open connections are made of.
 */
export class TunnelLimits {
  readonly #now: () => number
  readonly #open = new FairSemaphore({
    max: EGRESS_TUNNELS_MAX,
    ownerMax: EGRESS_TUNNELS_OF_ONE_MAX,
  })
  readonly #dials: Allowances
  readonly #failures: Allowances
  readonly #failuresOfHost: Allowances

  /** `now` is in milliseconds, and never goes back. */
  constructor(now: () => number) {
    this.#now = now
    this.#dials = new Allowances(EGRESS_DIALS_AT_ONCE, EGRESS_DIALS_PER_S / 1000)
    this.#failures = new Allowances(EGRESS_FAILED_DIALS, EGRESS_FAILED_DIALS / MINUTE_MS)
    this.#failuresOfHost = new Allowances(
      EGRESS_FAILED_DIALS_OF_HOST,
      EGRESS_FAILED_DIALS_OF_HOST / MINUTE_MS,
    )
  }

  /** Throws EgressLimitReached. */
  acquire(owner: string, host: string): TunnelLease {
    const now = this.#now()
    const destination = `${owner} ${host}`
    if (this.#open.isFull(owner)) {
      throw new EgressLimitReached(
        `Too many connections: the tenant's reactors have ${EGRESS_TUNNELS_OF_ONE_MAX} open`,
      )
    }
    if (!this.#open.isFree(owner)) {
      throw new EgressLimitReached(
        `Too many connections: reactors have ${EGRESS_TUNNELS_MAX} open in all`,
      )
    }
    if (this.#failures.left(owner, now) < 1) {
      throw new EgressLimitReached('Too many connections failed: try again in a minute')
    }
    if (this.#failuresOfHost.left(destination, now) < 1) {
      throw new EgressLimitReached(
        'Too many connections to this host failed: try again in a minute',
      )
    }
    if (this.#dials.left(destination, now) < 1) {
      throw new EgressLimitReached(
        `Too many connections to this host: more than ${EGRESS_DIALS_PER_S} a second`,
      )
    }
    this.#dials.spend(destination, now)
    this.#open.forceAcquire(owner)
    return {
      noteFailure: () => {
        const now = this.#now()
        this.#failures.spend(owner, now)
        this.#failuresOfHost.spend(destination, now)
      },
      release: () => this.#open.release(owner),
    }
  }
}

/** What each key may still spend: `most` at first, refilled at `perMs`. */
class Allowances {
  readonly #most: number
  readonly #perMs: number
  /** Only spending keeps a key: looking at one, which a refused caller can do, must not push out others. */
  readonly #spent = new LRUCache<string, { left: number; at: number }>({
    max: EGRESS_DIALLED_HOSTS_MAX,
  })

  constructor(most: number, perMs: number) {
    this.#most = most
    this.#perMs = perMs
  }

  left(key: string, now: number): number {
    const known = this.#spent.peek(key)
    if (known === undefined) return this.#most
    return Math.min(this.#most, known.left + (now - known.at) * this.#perMs)
  }

  spend(key: string, now: number): void {
    this.#spent.set(key, { left: this.left(key, now) - 1, at: now })
  }
}

const MINUTE_MS = 60_000
