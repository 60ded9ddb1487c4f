/**
 * Bytes that come in pieces and are kept until they are needed together.
 *
 * They are copied into one stretch: kept as they come, each piece takes hundreds of bytes for itself, and whoever
 * sends 5 MiB one byte at a time would have gigabytes held.
 */
export class BytePile {
  #bytes = Buffer.alloc(0)
  #length = 0

  get length(): number {
    return this.#length
  }

  add(piece: Uint8Array): void {
    const length = this.#length + piece.length
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, this.#bytes.length * 2))
      larger.set(this.#bytes.subarray(0, this.#length))
      this.#bytes = larger
    }
    this.#bytes.set(piece, this.#length)
    this.#length = length
  }

  /** Returns all that was added so far, in order; adding more does not change it. */
  whole(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }
}
