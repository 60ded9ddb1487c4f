import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ReadingTurns } from '../base/reading-turns.ts'
import type { Clock } from '../world/clock.ts'
import { gatherChunks } from './gather-chunks.ts'

/**
 * Sees to it that no connection has more than its share of the event loop, whoever is on it: one that says many small
 * chunks or requests at once is read again when there is a turn for it.
 *
 * Node reads 64 KiB at once, up to 32 times in a row, and requests that are sent without waiting for answers may be two thousand
 * in each: two such connections held up everybody else for seconds.
 */
export class ConnectionPace {
  readonly #clock: Pick<Clock, 'yield'>
  readonly #turns: ReadingTurns
  readonly #said = new WeakMap<Socket, Said>()
  #turn = 0
  #begun = false
  /** Those that said too much in this turn. */
  readonly #held = new Map<Socket, Said>()

  constructor(clock: Pick<Clock, 'yield'>, turns: ReadingTurns) {
    this.#clock = clock
    this.#turns = turns
  }

  /** Call it with every request, before any of its body was read. */
  admit(message: IncomingMessage): void {
    const { socket } = message
    if (!this.#begun) {
      this.#begun = true
      void this.#clock.yield().then(this.#endTurn)
    }
    let said = this.#said.get(socket)
    if (said === undefined) {
      said = { turn: this.#turn, requests: 0, foreseen: 0 }
      this.#said.set(socket, said)
    } else if (said.turn !== this.#turn) {
      said.turn = this.#turn
      said.requests = 0
    }
    said.requests += 1
    if (said.requests === FEW) {
      hold(socket)
      this.#held.set(socket, said)
    }
    gatherChunks(message, this.#clock, this.#turns)
  }

  readonly #endTurn = (): void => {
    this.#begun = false
    this.#turn += 1
    for (const [socket, said] of this.#held) {
      const chunks = said.requests * CHUNKS_LIKE_A_REQUEST
      this.#turns.spend(chunks - said.foreseen)
      said.foreseen = chunks
      this.#turns.wait(socket.remoteAddress ?? '', () => letGo(socket), chunks)
    }
    this.#held.clear()
  }
}

/** What a connection said in the latest turn in which it said anything. */
interface Said {
  turn: number
  requests: number
  /** Chunks that the turns were told of before. */
  foreseen: number
}

/** Who sends fewer at once is never made to wait. */
const FEW = 32

/** What a request costs at least, even where it is refused. */
const CHUNKS_LIKE_A_REQUEST = 20

/** Has nothing more read of `socket`, whoever asks for it. */
function hold(socket: Socket): void {
  socket.pause()
  socket.resume = () => socket
}

function letGo(socket: Socket): void {
  Reflect.deleteProperty(socket, 'resume')
  socket.resume()
}
