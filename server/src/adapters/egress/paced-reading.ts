import type { Socket } from 'node:net'
import {
  EGRESS_PORTION_BYTES_MAX,
  EGRESS_PORTION_BYTES_MIN,
  EGRESS_PORTION_CHUNKS,
} from '../../base/limits.ts'
import type { ReadingTurns } from '../../base/reading-turns.ts'

/**
 * Has undici read what a connection says in portions, while the turn lasts.
 *
 * Undici takes what there is by `read`, all of it at once, so that is where it is given less. To have it pause after some
 * chunks is no help: it puts the rest back where the socket has read more by then, and more each time. A portion is as
 * long as some chunks like those of the last one.
 */
export class PacedReading {
  readonly #turns: ReadingTurns
  readonly #owner: string
  #portion = EGRESS_PORTION_BYTES_MIN
  /** Of the last portion. */
  #bytes = 0
  #chunks = 0
  #waiting = false

  constructor(turns: ReadingTurns, owner: string) {
    this.#turns = turns
    this.#owner = owner
  }

  /** Takes note of a chunk that was in what was read, of so many bytes. */
  count(bytes: number): void {
    this.#chunks += 1
    this.#turns.count(bytes)
  }

  attach<Connection extends Socket>(socket: Connection): Connection {
    const read = socket.read.bind(socket)
    this.#waiting = false
    const goOn = (): void => {
      this.#waiting = false
      socket.emit('readable')
    }
    socket.read = (size?: number): Buffer | null => {
      // By read(0) a stream asks itself for more.
      if (size !== undefined) return read(size) as Buffer | null
      if (this.#turns.isOver) {
        if (!this.#waiting) this.#turns.wait(this.#owner, goOn)
        this.#waiting = true
        return null
      }
      this.#learn()
      const there = socket.readableLength
      const portion = there > this.#portion ? read(this.#portion) : read()
      this.#bytes = (portion as Buffer | null)?.length ?? 0
      return portion as Buffer | null
    }
    return socket
  }

  #learn(): void {
    if (this.#chunks === 0) return
    const bytes = (this.#bytes / this.#chunks) * EGRESS_PORTION_CHUNKS
    this.#portion = Math.floor(
      Math.min(EGRESS_PORTION_BYTES_MAX, Math.max(EGRESS_PORTION_BYTES_MIN, bytes)),
    )
    this.#chunks = 0
  }
}
