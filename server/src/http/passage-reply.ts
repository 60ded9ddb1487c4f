import type { FastifyReply, FastifyRequest } from 'fastify'
import assert from 'node:assert/strict'
import { passageCorsHeaders } from './cors.ts'
import type { DoorOptions } from './door.ts'
import type { PassageReply } from './passage.ts'

/** Writes an answer to the connection itself, past the framework: names keep their case, data its pace. */
export class WrittenReply implements PassageReply {
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #corsOrigins: DoorOptions['corsOrigins']

  constructor(request: FastifyRequest, reply: FastifyReply, { corsOrigins }: DoorOptions) {
    this.#request = request
    this.#reply = reply
    this.#corsOrigins = corsOrigins
  }

  get begun(): boolean {
    return this.#reply.raw.headersSent
  }

  get gone(): boolean {
    const { raw } = this.#reply
    return raw.destroyed && !raw.writableFinished
  }

  begin(status: number, reason: string, headers: readonly string[]): void {
    const { caller, headers: asked, traceId } = this.#request
    assert.equal(caller?.recorded, caller?.decisions.length, 'Cannot answer: it is not recorded')
    const { origin } = asked
    const cors = origin === undefined ? {} : passageCorsHeaders(this.#corsOrigins, origin)
    const own = Object.entries({ 'bt-trace-id': traceId, ...cors }).flat()
    this.#reply.hijack()
    this.#reply.raw.writeHead(status, reason, [...headers, ...own])
    // Whoever waits for the first byte sees the head at once. Not by flushHeaders(), which writes it as UTF-8.
    this.#reply.raw.write(NOTHING)
  }

  data(chunk: Uint8Array): boolean {
    return this.#reply.raw.write(chunk)
  }

  onDrain(callback: () => void): void {
    this.#reply.raw.on('drain', callback)
  }

  end(): void {
    this.#reply.raw.end()
  }

  onGone(callback: () => void): void {
    const { raw } = this.#reply
    if (this.gone) callback()
    else {
      raw.once('close', () => {
        if (!raw.writableFinished) callback()
      })
    }
  }

  /** Breaks an answer off, so that nobody takes it for whole. */
  breakOff(): void {
    const { socket, writableEnded } = this.#reply.raw
    if (writableEnded) return
    // To a client that reads until the end of the connection, only a reset is not an end.
    if (this.#request.raw.httpVersion === '1.0') socket?.resetAndDestroy()
    else this.#reply.raw.destroy()
  }
}

const NOTHING = new Uint8Array()
