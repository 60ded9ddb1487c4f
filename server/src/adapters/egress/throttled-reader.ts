import type { Socket } from 'node:net'
import {
  EGRESS_PORTION_BYTES_MAX,
  EGRESS_PORTION_BYTES_MIN,
  EGRESS_PORTION_CHUNKS,
} from '../../base/limits.ts'
import type { ReadThrottle } from '../../base/read-throttle.ts'
import { beforeDestroy } from '../system/patches/socket-closing.ts'
import { interceptReads } from '../system/patches/socket-reading.ts'
import { isGivenUpByUndici, liftHeaderLimit } from '../system/patches/undici-parser.ts'

/**
 * Makes undici read a connection in portions, as the throttle's budget allows.
 *
 * Undici consumes everything available in one `read`, so `read` returns less. Pausing undici after some chunks does not
 * help: it pushes the rest back in front of newly read data, more of it each time. A portion is sized for a number of
 * chunks like the last ones. In a header section, which may have thousands of fields, portions are small, and each line
 * counts as a chunk.
 */
export class ThrottledReader {
  readonly #throttle: ReadThrottle
  readonly #owner: string
  #portion = EGRESS_PORTION_BYTES_MIN
  /** Size and chunks of the last portion. */
  #bytes = 0
  #chunks = 0
  #atHeaderSection = true
  #waiting = false

  constructor(throttle: ReadThrottle, owner: string) {
    this.#throttle = throttle
    this.#owner = owner
  }

  /** Counts a chunk of the last portion, in bytes. */
  count(bytes: number): void {
    this.#chunks += 1
    this.#atHeaderSection = false
    this.#throttle.count(bytes)
  }

  /** Marks the start of a response. */
  expectHeaderSection(): void {
    this.#portion = EGRESS_PORTION_BYTES_MIN
    this.#chunks = 0
    this.#atHeaderSection = true
  }

  attach<Connection extends Socket>(socket: Connection): Connection {
    this.#waiting = false
    const resume = (): void => {
      this.#waiting = false
      socket.emit('readable')
    }
    interceptReads(socket, (read) => {
      // It would otherwise parse the rest of that data. What came before a destination closed is still read to its end.
      if (isGivenUpByUndici(socket.errored)) return null
      if (this.#throttle.isExhausted) {
        if (!this.#waiting) this.#throttle.wait(this.#owner, resume)
        this.#waiting = true
        return null
      }
      this.#learn()
      const isLong = socket.readableLength > this.#portion
      const portion = isLong ? read(this.#portion) : read()
      this.#bytes = portion?.length ?? 0
      if (isLong && this.#atHeaderSection) this.#throttle.spend(linesIn(portion!))
      return portion
    })
    beforeDestroy(socket, (error) => {
      if (isGivenUpByUndici(error)) liftHeaderLimit(socket)
    })
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
