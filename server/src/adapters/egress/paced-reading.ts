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
 * long as some chunks like those of the last one. Of a head, which has thousands of fields if it likes, it is short; and
 * each line of it counts as a chunk would.
 */
export class PacedReading {
  readonly #turns: ReadingTurns
  readonly #owner: string
  #portion = EGRESS_PORTION_BYTES_MIN
  /** Of the last portion. */
  #bytes = 0
  #chunks = 0
  #atHead = true
  #waiting = false

  constructor(turns: ReadingTurns, owner: string) {
    this.#turns = turns
    this.#owner = owner
  }

  /** Takes note of a chunk that was in what was read, of so many bytes. */
  count(bytes: number): void {
    this.#chunks += 1
    this.#atHead = false
    this.#turns.count(bytes)
  }

  /** From here on an answer begins. */
  expectHead(): void {
    this.#portion = EGRESS_PORTION_BYTES_MIN
    this.#chunks = 0
    this.#atHead = true
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
      // Undici goes on with what had come before it gave the connection up.
      if (socket.destroyed) return null
      if (this.#turns.isOver) {
        if (!this.#waiting) this.#turns.wait(this.#owner, goOn)
        this.#waiting = true
        return null
      }
      this.#learn()
      const isLong = socket.readableLength > this.#portion
      const portion = (isLong ? read(this.#portion) : read()) as Buffer | null
      this.#bytes = portion?.length ?? 0
      if (isLong && this.#atHead) this.#turns.spend(linesIn(portion!))
      return portion
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

function linesIn(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) lines++
  return lines
}
