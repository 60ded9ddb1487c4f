import { LRUCache } from 'lru-cache'
import { LIMITED_ADDRESSES_MAX, LIMITED_KEYS_MAX, LIMITS_LOGGED_MS } from '../base/limits.ts'
import { RateLimiter } from '../base/rate-limiter.ts'

/** Requests per minute; null for no limit. */
export interface RequestLimitSettings {
  /** Of one public key, and of the sessions it opened. */
  readonly perKey: number | null
  /** Of one client address with one such key. */
  readonly perAddress: number | null
}

/** A request over a limit. */
export interface LimitedRequest {
  readonly limit: 'key' | 'address'
  readonly retryAfterS: number
  /** Whether the log is to say so, which is once per key within LIMITS_LOGGED_MS. */
  readonly toLog: boolean
}

/**
 * The rate limits of public keys, as this process counts them: decision 0108.
 *
 * Keys and addresses are kept apart, so that a client with any number of addresses cannot have a key's count forgotten.
 */
export class RequestLimits {
  readonly #keys: RateLimiter | null
  readonly #addresses: RateLimiter | null
  /** When each key was last to be logged. */
  readonly #logged = new LRUCache<string, number>({ max: LIMITED_KEYS_MAX })

  constructor({ perKey, perAddress }: RequestLimitSettings) {
    this.#keys = perKey === null ? null : new RateLimiter(perKey, LIMITED_KEYS_MAX)
    this.#addresses =
      perAddress === null ? null : new RateLimiter(perAddress, LIMITED_ADDRESSES_MAX)
  }

  get countsAddresses(): boolean {
    return this.#addresses !== null
  }

  /**
   * Counts a request with a key from an address, or from none that counts. Returns null if it is within both limits; otherwise it
   * counts towards neither. `now` is in the clock's elapsed milliseconds.
   */
  admit(keyId: string, address: string | null, now: number): LimitedRequest | null {
    const [keys, addresses] = [this.#keys, address === null ? null : this.#addresses]
    const client = addresses === null ? '' : `${keyId} ${address}`
    const addressWaitMs = addresses?.waitMs(client, now) ?? 0
    const waitMs = Math.max(addressWaitMs, keys?.waitMs(keyId, now) ?? 0)
    if (waitMs > 0) {
      return {
        limit: addressWaitMs > 0 ? 'address' : 'key',
        retryAfterS: Math.ceil(waitMs / 1000),
        toLog: this.#isToLog(keyId, now),
      }
    }
    addresses?.take(client, now)
    keys?.take(keyId, now)
    return null
  }

  #isToLog(keyId: string, now: number): boolean {
    const last = this.#logged.get(keyId)
    if (last !== undefined && now - last < LIMITS_LOGGED_MS) return false
    this.#logged.set(keyId, now)
    return true
  }
}

/** Returns null if there is no limit, so that a request has one comparison to make. */
export function createRequestLimits(settings: RequestLimitSettings): RequestLimits | null {
  const { perKey, perAddress } = settings
  return perKey === null && perAddress === null ? null : new RequestLimits(settings)
}
