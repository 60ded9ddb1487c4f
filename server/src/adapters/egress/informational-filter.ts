import type { Socket } from 'node:net'
import { interceptReads } from '../system/patches/socket-reading.ts'

/**
 * Drops informational responses from a connection: `100 Continue`, `103 Early Hints` and others.
 *
 * A client must accept any number of them (RFC 9110, section 15.2), but undici treats an unrequested `100` as an error,
 * whatever came before it. `101` is not dropped: no protocol switch is ever requested. Undici consumes the socket
 * through `read`, so that is where they are filtered. Bytes are buffered while it is unclear whether such a response
 * begins, and until it ends.
 */
export class InformationalFilter {
  #atHeaderSection = false
  #buffered: Buffer | null = null

  /** Marks the start of a response: informational ones can come only before it. */
  expectHeaderSection(): void {
    this.#atHeaderSection = true
    this.#buffered = null
  }

  attach<Connection extends Socket>(socket: Connection): Connection {
    this.#buffered = null
    interceptReads(socket, (read) => {
      if (!this.#atHeaderSection) return read()
      for (;;) {
        const chunk = read()
        if (chunk === null) return null
        const rest = this.#filter(chunk)
        if (rest !== null) return rest
      }
    })
    return socket
  }

  /** Returns the remaining bytes, or null for none yet. */
  #filter(chunk: Buffer): Buffer | null {
    let bytes = this.#buffered === null ? chunk : Buffer.concat([this.#buffered, chunk])
    this.#buffered = null
    while (mayBeInformational(bytes)) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end === -1) {
        // An overlong one is left to the parser, which limits header sections.
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
  // Fast path: this digit of the status decides, unless only the first few bytes have arrived.
  if (bytes.length >= 12 && bytes[9] !== 0x31) return false
  const beginning = bytes.toString('latin1', 0, 12)
  if (beginning.length === 12) return INFORMATIONAL.test(beginning)
  return BEGINNING.startsWith(beginning.replace('1.0', '1.1').slice(0, 10))
}
