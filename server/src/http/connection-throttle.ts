import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ReadThrottle } from '../base/read-throttle.ts'
import type { Clock } from '../ports/clock.ts'
import { gatherChunks } from './gather-chunks.ts'

/**
 * Read throttling: sees to it that no connection has more than its part of the event loop, whoever is on it: one that says many small
 * chunks or requests at once is read again when the throttle lets it.
 *
 * Node reads 64 KiB at once, up to 32 times in a row, and requests that are sent without waiting for answers may be two thousand
 * in each: two such connections held up everybody else for seconds.
 */
export class ConnectionThrottle {
  readonly #clock: Pick<Clock, 'yield'>
  readonly #throttle: ReadThrottle
  readonly #said = new WeakMap<Socket, Said>()
  #tick = 0
  #begun = false
  /** Those that said too much in this tick. */
  readonly #paused = new Map<Socket, Said>()

  constructor(clock: Pick<Clock, 'yield'>, throttle: ReadThrottle) {
    this.#clock = clock
    this.#throttle = throttle
  }

  /** Call it with every request, before any of its body was read. */
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
      pause(socket)
      this.#paused.set(socket, said)
    }
    gatherChunks(message, this.#clock, this.#throttle)
  }

  readonly #endTick = (): void => {
    this.#begun = false
    this.#tick += 1
    for (const [socket, said] of this.#paused) {
      const chunks = said.requests * CHUNKS_LIKE_A_REQUEST
      this.#throttle.spend(chunks - said.foreseen)
      said.foreseen = chunks
      this.#throttle.wait(socket.remoteAddress ?? '', () => resume(socket), chunks)
    }
    this.#paused.clear()
  }
}

/** What a connection said in the latest tick in which it said anything. */
interface Said {
  tick: number
  requests: number
  /** Chunks that the throttle was told of before. */
  foreseen: number
}

/** Who sends fewer at once is never made to wait. */
const FEW = 32

/** What a request costs at least, even where it is refused. */
const CHUNKS_LIKE_A_REQUEST = 20

/** Has nothing more read of `socket`, whoever asks for it. */
function pause(socket: Socket): void {
  socket.pause()
  socket.resume = () => socket
}

function resume(socket: Socket): void {
  Reflect.deleteProperty(socket, 'resume')
  socket.resume()
}
