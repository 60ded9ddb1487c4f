import { generateKeyPair, randomFillSync } from 'node:crypto'
import { promisify } from 'node:util'
import { FairSemaphore } from '../../base/fair-semaphore.ts'
import { KiB } from '../../base/limits.ts'
import type { WorldRandom } from '../../ports/random.ts'

/**
 * Randomness of the operating system, fetched in bulk: a system call per nonce costs as much as
 * sealing with it, a portion of a pool next to nothing.
 *
 * No byte is returned twice, and the pool keeps no copy of returned bytes. Each result is a buffer
 * of its own, so that no caller reaches the rest of the pool through it.
 */
export class SystemRandom implements WorldRandom {
  readonly #pool = new Uint8Array(POOL_BYTES)
  /** Bytes before this index are returned and wiped; at the end of the pool nothing is left. */
  #given = POOL_BYTES
  readonly #keyTurns = new FairSemaphore({ max: 1 })

  bytes(length: number): Uint8Array {
    if (length > PORTION_BYTES_MAX) return randomFillSync(new Uint8Array(length))
    if (this.#given + length > POOL_BYTES) this.#refill()
    const from = this.#given
    this.#given += length
    const portion = this.#pool.slice(from, this.#given)
    this.#pool.fill(0, from, this.#given)
    return portion
  }

  /** Queued, since each generation occupies one of Node's four pool threads, which DNS look-ups use too. */
  async signingKey(tenantId: string): Promise<Uint8Array> {
    return await this.#keyTurns.run(tenantId, async () => {
      const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
      return privateKey.export({ type: 'pkcs8', format: 'der' })
    })
  }

  #refill(): void {
    randomFillSync(this.#pool)
    this.#given = 0
  }
}

const POOL_BYTES = 16 * KiB
const PORTION_BYTES_MAX = 1 * KiB
