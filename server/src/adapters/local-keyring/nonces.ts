import type { Random } from '../../ports/random.ts'
import { NONCE_BYTES } from './gcm.ts'

/**
 * Returns fresh nonces. They are not secret, so many are drawn at once: drawing one by itself takes
 * a twentieth of the time of sealing with it.
 */
export class Nonces {
  readonly #random: Random
  #drawn: Uint8Array = new Uint8Array(0)
  /** Bytes before this index were given out. */
  #given = 0
  /**
   * V8 keeps small arrays on its heap, and moves each off it when it is first passed to native
   * code. This buffer is off the heap from the start.
   */
  readonly #nonce = Buffer.allocUnsafeSlow(NONCE_BYTES)

  constructor(random: Random) {
    this.#random = random
  }

  /** Returns bytes that stay valid until the next call. */
  next(): Uint8Array {
    if (this.#given === this.#drawn.length) this.#draw()
    for (let at = 0; at < NONCE_BYTES; at++) this.#nonce[at] = this.#drawn[this.#given++]!
    return this.#nonce
  }

  #draw(): void {
    const drawn = this.#random.bytes(DRAWN_AT_ONCE * NONCE_BYTES)
    if (drawn.length < NONCE_BYTES || drawn.length % NONCE_BYTES !== 0) {
      throw new Error('Cannot seal: there is no whole nonce')
    }
    this.#drawn = drawn
    this.#given = 0
  }
}

const DRAWN_AT_ONCE = 64
