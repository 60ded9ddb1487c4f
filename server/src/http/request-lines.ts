import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { REQUESTS_AT_ONCE, REQUESTS_READ_A_TURN, REQUESTS_WAITING_MAX } from '../base/limits.ts'
import type { Clock } from '../world/clock.ts'
import { hold, letGo } from './hold.ts'
import { together } from './together.ts'
import { lineOf, type Line } from './under-way.ts'

/**
 * Has each connection be worked on for a few requests at a time, and read no further while others of its requests wait.
 *
 * Of short requests that do not wait for answers Node reads some thousand at once, and nothing can stop it in the middle. If all
 * were begun, a few connections would hold up everybody for seconds; and where the answers are not taken, they would
 * fill memory.
 */
export class RequestLines {
  readonly #clock: Pick<Clock, 'yield'>
  readonly #open = new Set<Socket>()
  /** Requests that wait, on all connections. */
  #waiting = 0
  /** Those of them that were read in this turn. */
  #read = 0
  #begun = false
  /** What is read again one after the other, by the address of who is there. */
  readonly #held = new Map<string | undefined, Socket[]>()

  constructor(clock: Pick<Clock, 'yield'>) {
    this.#clock = clock
  }

  /** Call it with every connection. */
  admit(socket: Socket): void {
    this.#open.add(socket)
    socket.once('close', () => {
      this.#open.delete(socket)
      this.#forget(lineOf(socket))
    })
  }

  /**
   * Takes note of a request that is to be answered by `response`, until that has happened, and calls `begin`: at once, or
   * where REQUESTS_AT_ONCE of its connection are under way, when those before it have their answers.
   */
  begin(response: ServerResponse, begin: () => void): void {
    const { socket } = response.req
    const line = lineOf(socket)
    const { all, waiting } = line
    all.add(response)
    response.once('close', () => {
      all.delete(response)
      if (waiting.length > 0) void together(this.#clock).then(() => this.#beginNext(socket, line))
    })
    if (all.size <= REQUESTS_AT_ONCE && waiting.length === 0) begin()
    else if (!socket.destroyed) this.#wait(socket, line, { response, begin })
  }

  #wait(socket: Socket, line: Line, request: Line['waiting'][number]): void {
    line.waiting.push(request)
    hold(socket, 'line')
    this.#waiting += 1
    this.#read += 1
    if (this.#waiting > REQUESTS_WAITING_MAX && line.waiting.length > REQUESTS_AT_ONCE) {
      this.#forget(line)
      socket.destroy()
    }
    this.#awaitTurn()
    if (this.#read === REQUESTS_READ_A_TURN) this.#holdAll()
  }

  #beginNext(socket: Socket, { waiting }: Line): void {
    const next = waiting.shift()
    if (next === undefined) return
    this.#waiting -= 1
    if (waiting.length === 0) letGo(socket, 'line')
    // Where nothing more can be said, nobody would learn of what is done.
    if (socket.writable && !next.response.destroyed) next.begin()
  }

  #forget({ waiting }: Line): void {
    this.#waiting -= waiting.length
    waiting.length = 0
  }

  /** The others may have as much to say, and would be read in the same turn. */
  #holdAll(): void {
    for (const socket of this.#open) {
      if (socket.isPaused()) continue
      hold(socket, 'turn')
      const { remoteAddress } = socket
      const those = this.#held.get(remoteAddress)
      if (those === undefined) this.#held.set(remoteAddress, [socket])
      else those.push(socket)
    }
  }

  #awaitTurn(): void {
    if (this.#begun) return
    this.#begun = true
    void this.#clock.yield().then(this.#endTurn)
  }

  readonly #endTurn = (): void => {
    this.#begun = false
    this.#read = 0
    for (const [owner, sockets] of this.#held) {
      letGo(sockets.shift()!, 'turn')
      if (sockets.length === 0) this.#held.delete(owner)
    }
    if (this.#held.size > 0) this.#awaitTurn()
  }
}
