import type { Random } from '../../ports/random.ts'
import { NONCE_BYTES } from './gcm.ts'

/**
 * Nonces, each fresh. They are no secret, so many are drawn at once: to draw one by itself takes a twentieth of what sealing
 * with it does.
 */
export class Nonces {
  readonly #random: Random
  #drawn: Uint8Array = new Uint8Array(0)
  /** Those before this byte were given. */
  #given = 0
  /** Small arrays lie on the heap, and each that goes out of JavaScript is first moved off it. This one is off it for good. */
  readonly #nonce = Buffer.allocUnsafeSlow(NONCE_BYTES)

  constructor(random: Random) {
    this.#random = random
  }

  /** Returns bytes that are good until the next call. */
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
