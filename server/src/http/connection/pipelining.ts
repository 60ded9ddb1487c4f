import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import {
  bytesAfterStop,
  interceptRequests,
  isParsed,
  isUpgrade,
  resumeParser,
  STOP,
  type OnIncoming,
} from '../../adapters/system/patches/http-parser.ts'
import { keepFromIdleClose } from '../../adapters/system/patches/socket-closing.ts'
import {
  isPausedByNode,
  parseThoughPaused,
  takeOverData,
} from '../../adapters/system/patches/socket-reading.ts'
import { KEEP_ALIVE_TIMEOUT_MS, PIPELINED_REQUESTS_MAX } from '../../base/limits.ts'
import type { ReadThrottle } from '../../base/read-throttle.ts'
import { CHUNKS_LIKE_A_REQUEST } from './connection-throttle.ts'
import { connectionState, type ConnectionState } from './connection-state.ts'
import { holdReading, releaseReading } from './read-hold.ts'
import { SliceEnds } from './slice-ends.ts'

/**
 * Bounds the requests in flight on one connection: while PIPELINED_REQUESTS_MAX of its responses have not left, it is not read.
 * Decision 0089.
 *
 * Node reads 64 KiB at once, two thousand short requests, and its parser hands over all of them before anything else runs. So the
 * second request in flight stops the parser, and from then on the connection is parsed in slices that hold one request each.
 * Connections that wait for each response are left alone.
 */
export class Pipelining {
  readonly #throttle: ReadThrottle
  /** Those with more than one request in flight so far. */
  readonly #sliced = new Set<PipelinedConnection>()

  constructor(throttle: ReadThrottle) {
    this.#throttle = throttle
  }

  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const state = connectionState(socket)
      state.pipelined = new PipelinedConnection(socket, state, this.#throttle, this.#sliced)
    })
    // When the server stops, Node takes a connection for idle if it has parsed no further request.
    keepFromIdleClose(server, () =>
      [...this.#sliced].filter((it) => it.waits).map(({ socket }) => socket),
    )
  }

  /** Returns whether `error` only says where the parser stopped; then the connection goes on in slices. */
  goesOn(error: Error, socket: Socket): boolean {
    const rest = bytesAfterStop(error)
    const { pipelined } = connectionState(socket)
    if (rest === null || pipelined === null) return false
    pipelined.goOn(rest)
    return true
  }
}

/** Whether the bytes of `request` had been read and kept, because of the requests before it. */
export function wasKept(request: IncomingMessage): boolean {
  return kept.has(request)
}

const kept = new WeakSet<IncomingMessage>()

/**
 * What each request of a connection that goes on is charged: so much that no other goes on in the same turn. Node accepts one
 * connection a turn, and new callers would wait behind strangers for as many turns as those have connections.
 */
const CHUNKS_OF_RELEASE = 6 * CHUNKS_LIKE_A_REQUEST

/** One connection, of which Pipelining bounds the requests in flight. */
export class PipelinedConnection {
  readonly socket: Socket
  readonly #inFlight: ReadonlySet<ServerResponse>
  readonly #throttle: ReadThrottle
  readonly #sliced: Set<PipelinedConnection>
  /** Node's own listener for data, which parses it; null while Node reads the connection by itself. */
  #parse: ((chunk: Buffer) => void) | null = null
  #ends = new SliceEnds()
  /** The request that was parsed last. */
  #latest: IncomingMessage | null = null
  /** Requests announced to the throttle that have not come. */
  #announced = 0
  #held = false
  /** Whether the stream holds bytes that were put back. */
  #putBack = false
  /** Whether such bytes are being parsed. */
  #parsesKept = false

  constructor(
    socket: Socket,
    { inFlight }: Pick<ConnectionState, 'inFlight'>,
    throttle: ReadThrottle,
    sliced: Set<PipelinedConnection>,
  ) {
    this.socket = socket
    this.#inFlight = inFlight
    this.#throttle = throttle
    this.#sliced = sliced
    const stops = interceptRequests(socket, (message, keepAlive, own) =>
      this.#take(message, keepAlive, own),
    )
    // Without the means to stop the parser, every connection is parsed in slices.
    if (!stops) this.#slice()
  }

  /** Whether requests that were read wait for those before them. */
  get waits(): boolean {
    return this.#putBack
  }

  /** Parses `rest`, which was read together with what made the parser stop. */
  goOn(rest: Buffer): void {
    if (this.socket.destroyed) return
    resumeParser(this.socket)
    this.#slice()
    this.#ends.bodyBegins(this.#latest!)
    this.#completeWithoutBody(rest.subarray(0, 0))
    this.#read(rest)
  }

  /** Without a body the request at which the parser stopped is complete at once, even if nothing follows. */
  #completeWithoutBody(nothing: Buffer): void {
    parseThoughPaused(this.socket, () => this.#parse!(nothing))
  }

  #take(message: IncomingMessage, keepAlive: boolean, own: OnIncoming): number {
    const upgrades = isUpgrade(message)
    this.#latest = message
    if (this.#parsesKept) kept.add(message)
    const result = own(message, keepAlive)
    if (this.#inFlight.size < 2) return result
    if (this.#announced > 0) this.#announced -= 1
    else this.#throttle.spend(CHUNKS_LIKE_A_REQUEST)
    if (result !== 0 || this.#parse !== null) return result
    if (!upgrades) return STOP
    // The parser cannot stop here. What was read after an upgrade is discarded.
    process.nextTick(() => this.#slice())
    return result
  }

  /** From now on Node hands over what it reads. */
  #slice(): void {
    const { socket } = this
    if (this.#parse !== null || socket.destroyed) return
    const read = (chunk: Buffer): void => this.#read(chunk)
    this.#parse = takeOverData(socket, read, () => this.#held)
    this.#sliced.add(this)
    socket.once('close', () => this.#sliced.delete(this))
  }

  #read(chunk: Buffer): void {
    const { socket } = this
    this.#parsesKept = this.#putBack
    this.#putBack = false
    let at = 0
    while (at < chunk.length && !this.#isStopped()) {
      const end = this.#ends.next(chunk, at, this.#latest?.complete !== false)
      const before = this.#latest
      this.#parse!(chunk.subarray(at, end))
      if (this.#latest !== before) this.#ends.bodyBegins(this.#latest!)
      at = end
      // Malformed bytes, or another protocol: nothing after them is parsed.
      if (socket.destroyed || !isParsed(socket)) return
    }
    this.#parsesKept = false
    const waits = this.#isFull() || (at < chunk.length && this.#isTooMuch())
    this.#putBack = at < chunk.length
    this.#forgetAnnounced()
    if (waits && !this.#held) this.#hold()
    if (!this.#putBack) return
    socket.pause()
    socket.unshift(chunk.subarray(at))
  }

  /** What a release announced is for the bytes that waited for it: requests that come later would be free. */
  #forgetAnnounced(): void {
    if (this.#announced > 0) this.#throttle.spend(-this.#announced * CHUNKS_OF_RELEASE)
    this.#announced = 0
  }

  #isStopped(): boolean {
    return (
      this.#isFull() || this.#isTooMuch() || this.socket.isPaused() || isPausedByNode(this.socket)
    )
  }

  #isFull(): boolean {
    return this.#inFlight.size >= PIPELINED_REQUESTS_MAX && this.#isBetweenRequests()
  }

  /** Whether others have sent so much in this tick that later requests of this connection have to wait. */
  #isTooMuch(): boolean {
    return this.#announced === 0 && this.#throttle.isExhausted && this.#isBetweenRequests()
  }

  /** The last request that fits must be read to the end of its body. */
  #isBetweenRequests(): boolean {
    return this.#latest?.complete !== false
  }

  #hold(): void {
    const { socket } = this
    this.#held = true
    holdReading(socket, 'pipeline')
    const responses = [...this.#inFlight]
    if (responses.length < PIPELINED_REQUESTS_MAX) this.#awaitRelease()
    else responses[0]!.once('close', () => this.#awaitRelease())
    // Node takes the connection for idle then. A server that stops closes idle connections sooner.
    const last = responses.at(-1)
    if (last === undefined) this.#keepAlive()
    else last.once('close', () => this.#keepAlive())
  }

  #keepAlive(): void {
    const { socket } = this
    // Others may have begun since.
    const isIdle = this.#putBack && this.#inFlight.size === 0
    if (isIdle && socket instanceof Socket) socket.setTimeout(KEEP_ALIVE_TIMEOUT_MS)
  }

  #awaitRelease(): void {
    const { socket } = this
    if (socket.destroyed) return
    const release = (): void => {
      this.#held = false
      this.#announced = this.#putBack ? PIPELINED_REQUESTS_MAX : 0
      releaseReading(socket, 'pipeline')
    }
    const chunks = PIPELINED_REQUESTS_MAX * CHUNKS_OF_RELEASE
    this.#throttle.wait(socket.remoteAddress ?? '', release, chunks)
  }
}
