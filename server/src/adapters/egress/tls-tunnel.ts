import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { EgressFailure } from '../../ports/egress.ts'
import { GrowingBuffer } from './growing-buffer.ts'
import { ClientRecords, ServerRecords } from './tls-records.ts'

/**
 * A connection that carries TLS only, in both directions, for the server name `host`; null for any. Anything else closes it, and the
 * client's is not sent.
 */
export class TlsTunnel extends Duplex {
  readonly #socket: Socket
  readonly #client: ClientRecords
  readonly #server = new ServerRecords()
  /** What the client has sent before its ClientHello was whole; null once that was passed on. */
  #held: GrowingBuffer | null = new GrowingBuffer()
  #isAnswered = false

  constructor(socket: Socket, host: string | null) {
    // As the socket: at most a chunk is read ahead.
    super({ allowHalfOpen: socket.allowHalfOpen, readableHighWaterMark: 1 })
    this.#socket = socket
    this.#client = new ClientRecords(host)
    socket
      .on('data', (chunk: Buffer) => this.#receive(chunk))
      .once('end', () => this.push(null))
      .on('error', (error) => this.destroy(error))
      .once('close', () => this.#closeOnceRead())
      .pause()
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    // The server has closed the connection, but what it sent before may not be read yet.
    if (this.#socket.writableEnded) return done()
    try {
      this.#client.follow(chunk)
    } catch (error) {
      done(error as Error)
      return
    }
    this.#held?.push(chunk)
    if (!this.#client.begun) return done()
    this.#socket.write(this.#held?.view() ?? chunk, done)
    this.#held = null
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#socket.writableEnded) return done()
    if (!this.#client.begun) {
      done(new EgressFailure('tls'))
      return
    }
    this.#socket.end(done)
  }

  /** Is closed when the socket is. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#socket.closed) done(error)
    else this.#socket.once('close', () => done(error)).destroy()
  }

  /** What the server sent before it closed the connection can still be read. */
  #closeOnceRead(): void {
    if (this.#socket.readableEnded && !this.readableEnded) this.once('end', () => this.destroy())
    else this.destroy()
  }

  #receive(chunk: Buffer): void {
    try {
      this.#server.follow(chunk)
    } catch (error) {
      this.destroy(error as Error)
      return
    }
    if (this.#server.answer !== null && !this.#isAnswered) {
      this.#isAnswered = true
      this.#client.goOn(this.#server.answer)
    }
    if (!this.push(chunk)) this.#socket.pause()
  }
}
