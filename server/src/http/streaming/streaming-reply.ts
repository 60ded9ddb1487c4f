import type { FastifyReply, FastifyRequest } from 'fastify'
import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import type { ServiceError } from '../../base/service-error.ts'
import { armTimeout, disarmTimeout, dropWait, isWaitedFor } from '../connection/socket-timeouts.ts'
import { streamingCorsHeaders } from '../format/cors.ts'
import type { PipelineOptions } from '../pipeline-options.ts'
import type { StreamingReply } from '../../request/streaming.ts'

/** Writes a response to the connection itself and bypasses the framework: header names keep their case, data its pace. */
export class WrittenReply implements StreamingReply {
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #corsOrigins: PipelineOptions['corsOrigins']
  #drained: () => void = () => {}
  /** Whether the header section is held back to leave with the first data. */
  #headerSectionWaits = false
  /** Whether a timeout watches for clients that take nothing. */
  #patient = false
  /** The error that ended the response, see abandon(). */
  #reason: ServiceError | null = null
  #abandoned: () => void = () => {}

  constructor(request: FastifyRequest, reply: FastifyReply, { corsOrigins }: PipelineOptions) {
    this.#request = request
    this.#reply = reply
    this.#corsOrigins = corsOrigins
  }

  /** Null for requests injected by tests. */
  get #socket(): Socket | null {
    const { socket } = this.#request.raw
    return socket instanceof Socket ? socket : null
  }

  get begun(): boolean {
    return this.#reply.raw.headersSent
  }

  /** The error to answer instead, if the response was abandoned before it began. */
  get reason(): ServiceError | null {
    return this.#reason
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
    // If writeHead() throws, an error is answered instead, so the framework must not be hijacked before that.
    raw.writeHead(status, reason, [...headers, ...own])
    this.#reply.hijack()
    // Complete with its header section, whatever else comes.
    if (status === 204 || status === 304) {
      raw.end()
      return
    }
    // A client that waits for the first byte sees the header section at once. Not by flushHeaders(), which writes it as UTF-8.
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

  /** Ends a response that must not go on for `reason`: breaks it off, or has `reason` answered if it has not begun. */
  abandon(reason: ServiceError): void {
    this.#reason = reason
    if (this.begun) this.breakOff()
    else this.#abandoned()
  }

  onGone(callback: () => void): void {
    const { raw } = this.#reply
    if (this.gone || this.#reason !== null) callback()
    else {
      this.#abandoned = callback
      raw.on('close', () => {
        if (!raw.writableFinished) callback()
      })
    }
  }

  /** Aborts a response, so that the client cannot take it for complete. */
  breakOff(): void {
    const { raw } = this.#reply
    if (raw.writableEnded) return
    // For a client that reads until the connection ends, only a reset signals an error.
    if (this.#request.raw.httpVersion === '1.0') raw.socket?.resetAndDestroy()
    else {
      // If a response breaks right after it began, the client still has to see that there was one: written data waits for the end
      // of this tick, and would be discarded.
      const socket = this.#socket
      for (let corked = socket?.writableCorked ?? 0; corked > 0; corked--) socket?.uncork()
      raw.destroy()
    }
  }

  /** A client that takes nothing for too long holds up a connection that other requests wait for. */
  #waitForDrain(): void {
    const { raw } = this.#reply
    if (raw.socket instanceof Socket) armTimeout(raw.socket, 'drain')
    if (this.#patient) return
    this.#patient = true
    // A response queued after others has no connection yet, and must not touch theirs.
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
