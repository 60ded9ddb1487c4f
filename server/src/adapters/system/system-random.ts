import { generateKeyPair, randomFillSync } from 'node:crypto'
import { promisify } from 'node:util'
import { FairQueue } from '../../base/fair-queue.ts'
import { KiB } from '../../base/limits.ts'
import type { WorldRandom } from '../../ports/random.ts'

/**
 * The operating system's randomness, fetched in bulk: one call for a nonce costs as much as sealing
 * with it, a share of a pool costs next to nothing.
 *
 * No byte is given twice, and the pool keeps no copy of what it gave. What is given is a buffer of
 * its own, so that nobody reaches the rest of the pool through it.
 */
export class SystemRandom implements WorldRandom {
  readonly #pool = new Uint8Array(POOL_BYTES)
  /** Bytes before this one are given and wiped; at the end there is nothing left to give. */
  #given = POOL_BYTES
  readonly #keyQueue = new FairQueue()

  bytes(length: number): Uint8Array {
    if (length > PORTION_BYTES_MAX) return randomFillSync(new Uint8Array(length))
    if (this.#given + length > POOL_BYTES) this.#refill()
    const from = this.#given
    this.#given += length
    const portion = this.#pool.slice(from, this.#given)
    this.#pool.fill(0, from, this.#given)
    return portion
  }

  /** Each holds one of Node's four threads, which names are looked up on, too. */
  async signingKey(tenantId: string): Promise<Uint8Array> {
    return await this.#keyQueue.run(tenantId, async () => {
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
