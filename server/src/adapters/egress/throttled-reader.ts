import type { Socket } from 'node:net'
import {
  EGRESS_PORTION_BYTES_MAX,
  EGRESS_PORTION_BYTES_MIN,
  EGRESS_PORTION_CHUNKS,
} from '../../base/limits.ts'
import type { ReadThrottle } from '../../base/read-throttle.ts'

/**
 * Has undici read what a connection says in portions, while the throttle has budget.
 *
 * Undici takes what there is by `read`, all of it at once, so that is where it is given less. To have it pause after some
 * chunks is no help: it puts the rest back where the socket has read more by then, and more each time. A portion is as
 * long as some chunks like those of the last one. Of a header section, which has thousands of fields if it likes, it is short; and
 * each line of it counts as a chunk would.
 */
export class ThrottledReader {
  readonly #throttle: ReadThrottle
  readonly #owner: string
  #portion = EGRESS_PORTION_BYTES_MIN
  /** Of the last portion. */
  #bytes = 0
  #chunks = 0
  #atHeaderSection = true
  #waiting = false

  constructor(throttle: ReadThrottle, owner: string) {
    this.#throttle = throttle
    this.#owner = owner
  }

  /** Takes note of a chunk that was in what was read, of so many bytes. */
  count(bytes: number): void {
    this.#chunks += 1
    this.#atHeaderSection = false
    this.#throttle.count(bytes)
  }

  /** From here on an answer begins. */
  expectHeaderSection(): void {
    this.#portion = EGRESS_PORTION_BYTES_MIN
    this.#chunks = 0
    this.#atHeaderSection = true
  }

  attach<Connection extends Socket>(socket: Connection): Connection {
    const read = socket.read.bind(socket)
    this.#waiting = false
    const resume = (): void => {
      this.#waiting = false
      socket.emit('readable')
    }
    socket.read = (size?: number): Buffer | null => {
      // By read(0) a stream asks itself for more.
      if (size !== undefined) return read(size) as Buffer | null
      if (isGivenUp(socket.errored)) return null
      if (this.#throttle.isExhausted) {
        if (!this.#waiting) this.#throttle.wait(this.#owner, resume)
        this.#waiting = true
        return null
      }
      this.#learn()
      const isLong = socket.readableLength > this.#portion
      const portion = (isLong ? read(this.#portion) : read()) as Buffer | null
      this.#bytes = portion?.length ?? 0
      if (isLong && this.#atHeaderSection) this.#throttle.spend(linesIn(portion!))
      return portion
    }
    const destroy = socket.destroy.bind(socket)
    socket.destroy = (error?: Error) => {
      if (isGivenUp(error ?? null)) overlookTheRest(socket)
      return destroy(error)
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

/**
 * Whether undici gave the connection up, because of what it read: it would go on to read what had come. What came before the
 * other side ended the connection is read to its end.
 */
function isGivenUp(error: Error | null): boolean {
  return error !== null && 'code' in error && String(error.code).startsWith('UND_ERR_')
}

/**
 * Has undici's parser not make an error for each further line of a header section that is too long: there may be ten thousand in what it
 * has read, each of which takes as long as twenty lines. There is no way to tell it from outside, so this looks inside.
 */
function overlookTheRest(socket: Socket): void {
  const key = Object.getOwnPropertySymbols(socket).find((it) => it.description === 'parser')
  const parser: unknown = key === undefined ? null : Reflect.get(socket, key)
  if (typeof parser === 'object' && parser !== null && 'headersMaxSize' in parser) {
    parser.headersMaxSize = Infinity
  }
}

function linesIn(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) lines++
  return lines
}
