/**
 * Collects chunks of bytes that are needed together.
 *
 * They are copied into one buffer: kept separately, each chunk takes hundreds of bytes of overhead, and a client that sends 5 MiB
 * one byte at a time would make us hold gigabytes.
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

  /** Returns all bytes added so far, in order; adding more does not change the result. */
  whole(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }
}
