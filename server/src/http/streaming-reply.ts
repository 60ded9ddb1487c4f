import type { FastifyReply, FastifyRequest } from 'fastify'
import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { armTimeout, disarmTimeout, dropWait, isWaitedFor } from './socket-timeouts.ts'
import { streamingCorsHeaders } from './cors.ts'
import type { PipelineOptions } from './pipeline-steps.ts'
import type { StreamingReply } from './streaming-endpoint.ts'

/** Writes an answer to the connection itself, past the framework: names keep their case, data its pace. */
export class WrittenReply implements StreamingReply {
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #corsOrigins: PipelineOptions['corsOrigins']
  #drained: () => void = () => {}
  /** Whether the header section has not left, and waits for data to go along with. */
  #headerSectionWaits = false
  /** Whether somebody looks after those who take nothing. */
  #patient = false

  constructor(request: FastifyRequest, reply: FastifyReply, { corsOrigins }: PipelineOptions) {
    this.#request = request
    this.#reply = reply
    this.#corsOrigins = corsOrigins
  }

  /** What tests inject comes over none. */
  get #socket(): Socket | null {
    const { socket } = this.#request.raw
    return socket instanceof Socket ? socket : null
  }

  get begun(): boolean {
    return this.#reply.raw.headersSent
  }

  get gone(): boolean {
    const { raw } = this.#reply
    return raw.destroyed && !raw.writableFinished
  }

  begin(status: number, reason: string, headers: readonly string[]): void {
    const { context, headers: asked, traceId } = this.#request
    assert.equal(context?.recorded, context?.decisions.length, 'Cannot answer: it is not recorded')
    const { origin } = asked
    const cors = origin === undefined ? {} : streamingCorsHeaders(this.#corsOrigins, origin)
    const own = ['bt-trace-id', traceId, ...Object.entries(cors).flat()]
    const { raw } = this.#reply
    // What it throws on is answered by an error, so the framework must not be told before that it is relieved.
    raw.writeHead(status, reason, [...headers, ...own])
    this.#reply.hijack()
    // It is whole with its header section, whatever else comes.
    if (status === 204 || status === 304) {
      raw.end()
      return
    }
    // Whoever waits for the first byte sees the header section at once. Not by flushHeaders(), which writes it as UTF-8.
    this.#headerSectionWaits = true
    queueMicrotask(() => {
      if (this.#headerSectionWaits) this.data(NOTHING)
    })
  }

  data(chunk: Uint8Array): boolean {
    this.#headerSectionWaits = false
    if (this.#reply.raw.writableEnded) return true
    const welcome = this.#reply.raw.write(chunk)
    if (!welcome) this.#waitForDrain()
    return welcome
  }

  onDrain(callback: () => void): void {
    this.#drained = callback
  }

  end(): void {
    this.#headerSectionWaits = false
    this.#reply.raw.end()
  }

  onGone(callback: () => void): void {
    const { raw } = this.#reply
    if (this.gone) callback()
    else {
      raw.on('close', () => {
        if (!raw.writableFinished) callback()
      })
    }
  }

  /** Breaks an answer off, so that nobody takes it for whole. */
  breakOff(): void {
    const { raw } = this.#reply
    if (raw.writableEnded) return
    // To a client that reads until the end of the connection, only a reset is not an end.
    if (this.#request.raw.httpVersion === '1.0') raw.socket?.resetAndDestroy()
    else {
      // Of an answer that broke as soon as it began, its caller is to know that there was one: what was written
      // waits for the end of this turn, and would be thrown away.
      const socket = this.#socket
      for (let corked = socket?.writableCorked ?? 0; corked > 0; corked--) socket?.uncork()
      raw.destroy()
    }
  }

  /** Whoever takes nothing of it for so long holds up a connection that others wait for. */
  #waitForDrain(): void {
    const { raw } = this.#reply
    if (raw.socket instanceof Socket) armTimeout(raw.socket, 'drain')
    if (this.#patient) return
    this.#patient = true
    // An answer behind others has no connection yet, and theirs is theirs.
    let socket: Socket | null = raw.socket
    raw.on('socket', (its) => {
      socket = its
      if (its instanceof Socket) armTimeout(its, 'drain')
    })
    raw.on('timeout', () => {
      if (!(socket instanceof Socket) || isWaitedFor(socket, 'drain')) raw.destroy()
    })
    raw.on('drain', () => {
      if (socket instanceof Socket) disarmTimeout(socket, 'drain')
      this.#drained()
    })
    raw.on('close', () => {
      if (socket instanceof Socket) dropWait(socket, 'drain')
    })
  }
}

const NOTHING = new Uint8Array()
