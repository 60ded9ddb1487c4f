import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { EGRESS_HEADER_SECTION_BYTES_MAX } from '../../base/limits.ts'
import { http } from '../../base/node-http.ts'
import { EgressFailure, type OutboundReceiver, type OutboundRequest } from '../../ports/egress.ts'
import { EgressCall } from './call.ts'
import type { DialCall } from './dial-agent.ts'
import { measured } from './measured.ts'
import type { QueuedCall, Pool } from './pool.ts'
import type { Timekeeper } from './timekeeper.ts'

/**
 * A request through Node's own client, for header fields that undici does not send. Its connections come from dial().
 */
export class NodeCall extends EgressCall implements QueuedCall, DialCall {
  readonly #pool: Pool
  readonly #path: string
  /** Whether the request itself asks for the connection to close. */
  readonly #closes: boolean
  /** An agent of its own, for a connection that is not reused. */
  #ownAgent: Agent | null = null
  #begun = false
  #sending: ClientRequest | null = null
  #answer: IncomingMessage | null = null
  /** Cancels the connection attempt in progress. */
  giveUp: (() => void) | null = null

  constructor(
    pool: Pool,
    path: string,
    closes: boolean,
    request: OutboundRequest,
    receiver: OutboundReceiver,
    timekeeper: Timekeeper,
  ) {
    super(request, receiver, timekeeper)
    this.#pool = pool
    this.#path = path
    this.#closes = closes
    pool.admit(this)
  }

  begin(): void {
    this.#begun = true
    const { agent, history } = this.#pool
    const own = this.#closes || (!this.repeatable && !history.isSteady())
    try {
      this.#send(own ? this.#newAgent() : agent)
    } catch (error) {
      this.#release()
      this.onError(error)
    }
  }

  protected goOn(): void {
    this.#answer?.resume()
  }

  protected drop(): void {
    if (!this.#begun) this.#pool.leave(this)
    this.giveUp?.()
    this.#sending?.destroy()
  }

  #send(agent: Agent): void {
    const { method, body } = this.request
    const options = {
      method,
      path: this.#path,
      headers: this.#fields(),
      agent,
      insecureHTTPParser: false,
      maxHeaderSize: EGRESS_HEADER_SECTION_BYTES_MAX,
      call: this,
    }
    const sending = http.request(options)
    this.#sending = sending
    // Node drops header fields beyond a count; their bytes are bounded already.
    sending.maxHeadersCount = 0
    sending.on('response', (answer) => this.#receive(answer))
    sending.on('upgrade', (_, socket) => {
      socket.destroy()
      this.onError(new EgressFailure('answer-invalid'))
    })
    const isCurrent = (): boolean => sending === this.#sending
    sending.on('error', (error) => {
      if (!isCurrent() || this.#sendsAgain(sending, error)) return
      if (this.#pool.mayExpectTls) this.onErrorBeforeAnswer(error)
      else this.onError(error)
    })
    sending.on('close', () => {
      if (!isCurrent()) return
      this.#release()
      if (this.#answer?.complete !== true) this.onError(new EgressFailure('reset'))
    })
    if (body === null || body instanceof Uint8Array) sending.end(body ?? undefined)
    else {
      const chunks = Readable.from(
        measured(body, () => this.onSent()),
        { objectMode: false },
      )
      chunks.on('error', (error) => this.fail(error)).pipe(sending)
      sending.on('close', () => chunks.destroy())
    }
  }

  /** Sends the request on a new connection if it may be repeated, and `error` is the close of a reused connection. */
  #sendsAgain(sending: ClientRequest, error: Error): boolean {
    if (!sending.reusedSocket || !this.isClosedEarly(error)) return false
    this.#pool.history.noteClose()
    if (!this.repeatable) return false
    this.#send(this.#newAgent())
    return true
  }

  #newAgent(): Agent {
    return (this.#ownAgent = this.#pool.newAgent())
  }

  #receive(answer: IncomingMessage): void {
    this.#answer = answer
    this.#pool.onAnswer()
    this.onHeaderSection(answer.statusCode!, answer.statusMessage ?? '', answer.rawHeaders)
    const { throttle, owner } = this.#pool.readerOptions
    answer.on('data', (chunk: Buffer) => {
      throttle.count(chunk.byteLength)
      if (!this.onData(chunk)) answer.pause()
      else if (throttle.isExhausted) {
        answer.pause()
        throttle.wait(owner, () => {
          if (!this.paused) answer.resume()
        })
      }
    })
    answer.on('error', (error) => this.onError(error))
    answer.on('end', () => {
      // The destination responded without waiting for the rest of the request, so the rest is not sent.
      if (!this.#sending!.writableFinished) this.#sending!.destroy()
      this.#release()
      this.onEnd()
    })
  }

  #fields(): string[] {
    const { headers, body, method } = this.request
    const fields = ['Host', this.#pool.authority, ...headers]
    // Announces the close, so that the destination is the one to close.
    if (this.#ownAgent !== null && !isNamed(headers, 'connection'))
      fields.push('Connection', 'close')
    const length = body instanceof Uint8Array ? body.byteLength : body === null ? 0 : body.length
    if (length === null) fields.push('Transfer-Encoding', 'chunked')
    else if (length > 0 || BODY_EXPECTED.has(method)) fields.push('Content-Length', String(length))
    return fields
  }

  #release(): void {
    if (!this.#begun) return
    this.#begun = false
    this.#ownAgent?.destroy()
    this.#pool.release(null)
  }
}

function isNamed(headers: readonly string[], name: string): boolean {
  return headers.some((it, at) => at % 2 === 0 && it.toLowerCase() === name)
}

/** Methods whose requests send `Content-Length: 0` without a body. Source: RFC 9110, section 8.6. */
const BODY_EXPECTED: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])
