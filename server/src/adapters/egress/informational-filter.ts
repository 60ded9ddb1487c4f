import type { Socket } from 'node:net'

/**
 * Takes informational answers out of what a connection says: `100 Continue`, `103 Early Hints` and the like.
 *
 * A client has to bear with any number of them (RFC 9110, section 15.2), and undici takes a `100` that nobody asked for as
 * an error, whatever came before it. `101` is no such answer: nobody is asked to switch. Undici takes what there is by
 * `read`, so that is where they are left out. As long as it cannot be said whether one begins, or until it has ended,
 * what came is buffered.
 */
export class InformationalFilter {
  #atHeaderSection = false
  #buffered: Buffer | null = null

  /** From here on an answer begins: only before it can there be others. */
  expectHeaderSection(): void {
    this.#atHeaderSection = true
    this.#buffered = null
  }

  attach<Connection extends Socket>(socket: Connection): Connection {
    const read = socket.read.bind(socket)
    this.#buffered = null
    socket.read = (size?: number): Buffer | null => {
      // By read(0) a stream asks itself for more.
      if (size !== undefined || !this.#atHeaderSection) return read(size) as Buffer | null
      for (;;) {
        const chunk = read() as Buffer | null
        if (chunk === null) return null
        const rest = this.#filter(chunk)
        if (rest !== null) return rest
      }
    }
    return socket
  }

  /** Returns what remains, or null for nothing yet. */
  #filter(chunk: Buffer): Buffer | null {
    let bytes = this.#buffered === null ? chunk : Buffer.concat([this.#buffered, chunk])
    this.#buffered = null
    while (mayBeInformational(bytes)) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end === -1) {
        // One that goes on and on is left to the parser, which knows when it is too long.
        if (bytes.length > INFORMATIONAL_BYTES_MAX) break
        this.#buffered = bytes
        return null
      }
      bytes = bytes.subarray(end + 4)
      if (bytes.length === 0) return null
    }
    this.#atHeaderSection = false
    return bytes
  }
}

const INFORMATIONAL_BYTES_MAX = 4_096
const BEGINNING = 'HTTP/1.1 1'
const INFORMATIONAL = /^HTTP\/1\.[01] 1(?!01)\d\d$/

function mayBeInformational(bytes: Buffer): boolean {
  // The digit that tells them apart, for all but the first bytes of a connection in tatters.
  if (bytes.length >= 12 && bytes[9] !== 0x31) return false
  const beginning = bytes.toString('latin1', 0, 12)
  if (beginning.length === 12) return INFORMATIONAL.test(beginning)
  return BEGINNING.startsWith(beginning.replace('1.0', '1.1').slice(0, 10))
}
