/** Bytes that come in pieces, in one buffer that doubles as needed, so that a byte by itself costs no more than its place. */
export class GrowingBuffer {
  #bytes = Buffer.allocUnsafe(BYTES_MIN)
  #length = 0

  get length(): number {
    return this.#length
  }

  push(piece: Uint8Array): void {
    const length = this.#length + piece.length
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#bytes.length))
      larger.set(this.#bytes.subarray(0, this.#length))
      this.#bytes = larger
    }
    this.#bytes.set(piece, this.#length)
    this.#length = length
  }

  /** The bytes so far, valid until the next push(). */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }
}

const BYTES_MIN = 1024
