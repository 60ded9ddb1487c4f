import { hash } from 'node:crypto'
import { EgressFailure } from '../../ports/egress.ts'
import { GrowingBuffer } from './growing-buffer.ts'

/**
 * Follows one direction of a TLS connection, record by record, without its keys. Another protocol, at the beginning or later, is
 * detected at its first bytes.
 *
 * Source: RFC 8446, sections 4.1.2, 5.1 and 5.2; RFC 6066, section 3.
 */
abstract class TlsRecords {
  readonly #header = Buffer.allocUnsafe(HEADER_BYTES)
  #headerBytes = 0
  /** Bytes of the record that are still to come. */
  #left = 0
  #first = true

  /** Throws EgressFailure (`tls`) if the bytes do not continue a sequence of TLS records. */
  follow(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      if (this.#left > 0) {
        const end = Math.min(at + this.#left, chunk.length)
        this.#left -= end - at
        this.content(chunk, at, end)
        at = end
        continue
      }
      if (this.#headerBytes === 0 && at + HEADER_BYTES <= chunk.length) {
        this.#checkHeader(chunk, at, HEADER_BYTES)
        at += HEADER_BYTES
      } else {
        this.#header[this.#headerBytes++] = chunk[at++]!
        this.#checkHeader(this.#header, 0, this.#headerBytes)
      }
    }
  }

  /**
   * Checks the first `count` bytes of the header at `at`, even if that is not all of it: another protocol need not have five bytes.
   *
   * 64 KiB may hold 13,000 headers. Reading them in one go, and by index, takes a fifth of the time.
   */
  #checkHeader(bytes: Buffer, at: number, count: number): void {
    const type = bytes[at]!
    const known = this.#first ? this.isFirstType(type) : type >= TYPE_MIN && type <= TYPE_MAX
    if (
      !known ||
      !this.maySend ||
      (count > 1 && bytes[at + 1] !== 3) ||
      (count > 2 && bytes[at + 2]! > 4)
    ) {
      throw notTls()
    }
    if (count < HEADER_BYTES) return
    const length = (bytes[at + 3]! << 8) | bytes[at + 4]!
    if (length > RECORD_BYTES_MAX || (length === 0 && type !== APPLICATION_DATA)) throw notTls()
    this.#headerBytes = 0
    this.#first = false
    this.#left = length
    this.record(type, length)
  }

  /** Whether it is this side's turn. */
  protected abstract readonly maySend: boolean
  /** Whether a connection may begin with a record of this type. */
  protected abstract isFirstType(type: number): boolean
  /** Called with the type and the length of each record, before its content. */
  protected abstract record(type: number, length: number): void
  /** Called with the bytes from `from` to `to`, which are content of the record. */
  protected abstract content(bytes: Buffer, from: number, to: number): void
}

/** What a server answers a ClientHello: that it asks for another one, or anything else. */
export type TlsAnswer = 'retry' | 'other'

/** What a server sends: a handshake, or an alert that refuses it, and then any records. */
export class ServerRecords extends TlsRecords {
  protected readonly maySend = true
  /** The beginning of its first message; null once that is known. */
  #message: GrowingBuffer | null = new GrowingBuffer()
  #reads = false
  #answer: TlsAnswer | null = null

  /** Null until it is known. */
  get answer(): TlsAnswer | null {
    return this.#answer
  }

  protected isFirstType(type: number): boolean {
    return type === HANDSHAKE || type === ALERT
  }

  protected record(type: number): void {
    // A warning may come before the first message.
    this.#reads = type === HANDSHAKE
  }

  protected content(bytes: Buffer, from: number, to: number): void {
    if (this.#message === null || !this.#reads) return
    this.#message.push(bytes.subarray(from, Math.min(to, from + SERVER_RANDOM_END)))
    const message = this.#message.view()
    if (message[0] !== SERVER_HELLO) return this.#answered('other')
    if (message.length < SERVER_RANDOM_END) return
    const random = message.subarray(SERVER_RANDOM_END - RANDOM_BYTES, SERVER_RANDOM_END)
    this.#answered(random.equals(RANDOM_OF_RETRY) ? 'retry' : 'other')
  }

  #answered(answer: TlsAnswer): void {
    this.#message = null
    this.#answer = answer
  }
}

/**
 * What a client sends: a ClientHello first, whose server name is the host of the destination or missing; then, once the server has
 * answered, any records. If the server asks for another ClientHello, that comes next, and its name is checked as well.
 *
 * Before the answer it sends nothing: the clients in a reactor, Node's, have no early data.
 */
export class ClientRecords extends TlsRecords {
  readonly #host: string | null
  /** The ClientHello that must come; null when none must. */
  #hello: GrowingBuffer | null = new GrowingBuffer()
  /** How much of it is needed to go on. */
  #wanted = 1
  #begun = false
  #isAnswered = false
  /** Whether the content of the record belongs to the ClientHello. */
  #reads = false

  /** `host` is null for a destination that is an address: then any name may be asked for. */
  constructor(host: string | null) {
    super()
    this.#host = host
  }

  /** Whether the first ClientHello has come whole, and is one for the host. Nothing may be sent before. */
  get begun(): boolean {
    return this.#begun
  }

  protected get maySend(): boolean {
    return !this.#begun || this.#isAnswered
  }

  /** The server has answered the first ClientHello. */
  goOn(answer: TlsAnswer): void {
    this.#isAnswered = true
    if (answer === 'other') return
    this.#hello = new GrowingBuffer()
    this.#wanted = 1
  }

  protected isFirstType(type: number): boolean {
    return type === HANDSHAKE
  }

  protected record(type: number): void {
    if (this.#hello === null) return
    this.#reads = type === HANDSHAKE
    // Before its second ClientHello, a client may send a change_cipher_spec that says nothing, or give up.
    const isBefore = this.#begun && this.#hello.length === 0
    if (!this.#reads && !(isBefore && type < HANDSHAKE)) throw notTls()
  }

  protected content(bytes: Buffer, from: number, to: number): void {
    if (this.#hello === null || !this.#reads) return
    this.#hello.push(bytes.subarray(from, to))
    // Each byte may come in a record of its own.
    if (this.#hello.length >= this.#wanted) this.#take(this.#hello.view())
  }

  #take(bytes: Buffer): void {
    if (bytes[0] !== CLIENT_HELLO) throw notTls()
    if (bytes.length >= MESSAGE_HEADER_BYTES) {
      this.#wanted = MESSAGE_HEADER_BYTES + bytes.readUIntBE(1, 3)
      if (this.#wanted > CLIENT_HELLO_BYTES_MAX) throw notTls()
    } else this.#wanted = MESSAGE_HEADER_BYTES
    if (bytes.length < this.#wanted) return
    this.#check(bytes)
    this.#begun = true
    this.#hello = null
  }

  #check(hello: Buffer): void {
    const names = serverNames(hello)
    if (this.#host === null) return
    const host = withoutDot(this.#host)
    if (names.some((it) => withoutDot(it.toLowerCase()) !== host)) throw notTls()
  }
}

/** Returns the server names that a ClientHello asks for. Throws EgressFailure if it is not well-formed, or hides its name. */
function serverNames(hello: Buffer): string[] {
  try {
    const reader = new VectorReader(hello.subarray(MESSAGE_HEADER_BYTES))
    reader.skip(VERSION_BYTES + RANDOM_BYTES)
    reader.vector(1)
    reader.vector(2)
    reader.vector(1)
    if (reader.ended) return []
    const extensions = new VectorReader(reader.vector(2))
    if (!reader.ended) throw notTls()
    const names: string[] = []
    while (!extensions.ended) {
      const type = extensions.number(2)
      const content = new VectorReader(extensions.vector(2))
      if (type === ENCRYPTED_CLIENT_HELLO) throw notTls()
      if (type !== SERVER_NAME) continue
      const list = new VectorReader(content.vector(2))
      while (!list.ended) {
        list.skip(1)
        names.push(list.vector(2).toString('latin1'))
      }
    }
    return names
  } catch {
    throw notTls()
  }
}

/** Reads numbers and vectors. Throws RangeError at the end. */
class VectorReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get ended(): boolean {
    return this.#at === this.#bytes.length
  }

  skip(count: number): void {
    this.#at += count
    if (this.#at > this.#bytes.length) throw new RangeError('It ends too early')
  }

  number(bytes: number): number {
    this.skip(bytes)
    return this.#bytes.readUIntBE(this.#at - bytes, bytes)
  }

  /** Returns the content of a vector whose length is in that many bytes. */
  vector(lengthBytes: number): Buffer {
    const length = this.number(lengthBytes)
    this.skip(length)
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name
}

function notTls(): EgressFailure {
  return new EgressFailure('tls')
}

const HEADER_BYTES = 5
/** Encrypted records may be this much longer than the 16 KiB of their content: RFC 5246, section 6.2.3. */
const RECORD_BYTES_MAX = 2 ** 14 + 2048
const ALERT = 21
const HANDSHAKE = 22
const APPLICATION_DATA = 23
/** From change_cipher_spec, alert and handshake to application_data. */
const TYPE_MIN = 20
const TYPE_MAX = APPLICATION_DATA

const CLIENT_HELLO = 1
const MESSAGE_HEADER_BYTES = 4
const SERVER_HELLO = 2
const CLIENT_HELLO_BYTES_MAX = 2 ** 16
const VERSION_BYTES = 2
const RANDOM_BYTES = 32
/** Where the random of a ServerHello ends, in its message. */
const SERVER_RANDOM_END = MESSAGE_HEADER_BYTES + VERSION_BYTES + RANDOM_BYTES
/** SHA-256 of "HelloRetryRequest", by which a ServerHello is known as one: RFC 8446, section 4.1.3. */
const RANDOM_OF_RETRY = hash('sha256', 'HelloRetryRequest', 'buffer')
const SERVER_NAME = 0
/** RFC 9849: it would hide the name that counts. */
const ENCRYPTED_CLIENT_HELLO = 0xfe0d
