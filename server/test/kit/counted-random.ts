import type { Random } from '../../src/ports/random.ts'

/** A counter in place of random bytes: each call returns the next number, big-endian, in the requested width. */
export class CountedRandom implements Random {
  #count = 0

  bytes(length: number): Uint8Array {
    this.#count += 1
    const bytes = new Uint8Array(length)
    let rest = this.#count
    for (let at = length - 1; at >= 0 && rest > 0; at -= 1) {
      bytes[at] = rest % 256
      rest = Math.floor(rest / 256)
    }
    return bytes
  }
}
