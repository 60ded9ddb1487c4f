import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ReadThrottle } from '../../base/read-throttle.ts'
import type { Clock } from '../../ports/clock.ts'
import { connectionState, type ConnectionState } from './connection-state.ts'
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
  #tick = 0
  #begun = false
  /** Connections paused because they sent too much in this tick. */
  readonly #paused = new Map<Socket, ConnectionState['sent']>()

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
    const { sent } = connectionState(socket)
    if (sent.tick !== this.#tick) {
      sent.tick = this.#tick
      sent.requests = 0
    }
    sent.requests += 1
    if (sent.requests === FEW) {
      holdReading(socket, 'throttle')
      this.#paused.set(socket, sent)
    }
    gatherChunks(message, this.#clock, this.throttle)
  }

  readonly #endTick = (): void => {
    this.#begun = false
    this.#tick += 1
    for (const [socket, sent] of this.#paused) {
      const chunks = sent.requests * CHUNKS_LIKE_A_REQUEST
      this.throttle.spend(chunks - sent.foreseen)
      sent.foreseen = chunks
      this.throttle.wait(
        socket.remoteAddress ?? '',
        () => releaseReading(socket, 'throttle'),
        chunks,
      )
    }
    this.#paused.clear()
  }
}

/** A connection that sends fewer at once never waits. */
const FEW = 32

/** The minimum cost of a request, even a refused one. */
export const CHUNKS_LIKE_A_REQUEST = 20
