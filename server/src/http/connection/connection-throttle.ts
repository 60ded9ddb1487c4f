import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ReadThrottle } from '../../base/read-throttle.ts'
import type { Clock } from '../../ports/clock.ts'
import { gatherChunks } from './gather-chunks.ts'
import { holdReading, releaseReading } from './read-hold.ts'

/**
 * Read throttling: keeps any one connection from taking more than its share of the event loop. A connection that sends many small
 * chunks or requests at once is paused, and read again when the throttle lets it.
 *
 * Node reads 64 KiB at once, up to 32 times in a row, and each read may hold two thousand pipelined requests: two such
 * connections held up all others for seconds.
 */
export class ConnectionThrottle {
  readonly #clock: Pick<Clock, 'yield'>
  /** Shared with everything else that is read. */
  readonly throttle: ReadThrottle
  readonly #said = new WeakMap<Socket, Said>()
  #tick = 0
  #begun = false
  /** Connections paused because they sent too much in this tick. */
  readonly #paused = new Map<Socket, Said>()

  constructor(clock: Pick<Clock, 'yield'>, throttle: ReadThrottle) {
    this.#clock = clock
    this.throttle = throttle
  }

  /** Call this with every request, before any of its body is read. */
  admit(message: IncomingMessage): void {
    const { socket } = message
    if (!this.#begun) {
      this.#begun = true
      void this.#clock.yield().then(this.#endTick)
    }
    let said = this.#said.get(socket)
    if (said === undefined) {
      said = { tick: this.#tick, requests: 0, foreseen: 0 }
      this.#said.set(socket, said)
    } else if (said.tick !== this.#tick) {
      said.tick = this.#tick
      said.requests = 0
    }
    said.requests += 1
    if (said.requests === FEW) {
      holdReading(socket, 'throttle')
      this.#paused.set(socket, said)
    }
    gatherChunks(message, this.#clock, this.throttle)
  }

  readonly #endTick = (): void => {
    this.#begun = false
    this.#tick += 1
    for (const [socket, said] of this.#paused) {
      const chunks = said.requests * CHUNKS_LIKE_A_REQUEST
      this.throttle.spend(chunks - said.foreseen)
      said.foreseen = chunks
      this.throttle.wait(
        socket.remoteAddress ?? '',
        () => releaseReading(socket, 'throttle'),
        chunks,
      )
    }
    this.#paused.clear()
  }
}

/** Counts of what a connection sent in the latest tick in which it sent anything. */
interface Said {
  tick: number
  requests: number
  /** Chunks announced to the throttle before they came. */
  foreseen: number
}

/** A connection that sends fewer at once never waits. */
const FEW = 32

/** The minimum cost of a request, even a refused one. */
export const CHUNKS_LIKE_A_REQUEST = 20
