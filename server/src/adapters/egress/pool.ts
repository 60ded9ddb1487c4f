import { EGRESS_CONNECTIONS_MAX, EGRESS_WAITING_MAX } from '../../base/limits.ts'
import { EgressFailure } from '../../world/egress.ts'
import type { DialSettings, Target, TlsMemory } from './dial.ts'
import { Lane } from './lane.ts'

/** What waits for its turn on a connection. */
export interface Passenger {
  /** Is to hand the lane back by release(). */
  board(lane: Lane): void
  fail(error: unknown): void
}

/**
 * The connections of one tenant to one destination: used again one after the other, never by somebody else.
 *
 * A request has a connection to itself. Those that find none free wait in line, and leave it when their time is
 * up; the lane with the latest use is taken first, so that connections nobody needs fall idle and are closed.
 */
export class Pool {
  readonly target: Target
  readonly memory: TlsMemory = { session: undefined }
  readonly #settings: DialSettings
  readonly #idle: Lane[] = []
  readonly #busy = new Set<Lane>()
  readonly #waiting = new Set<Passenger>()
  #closed = false

  constructor(target: Target, settings: DialSettings) {
    this.target = target
    this.#settings = settings
  }

  /** Boards `passenger` at once, or when its turn comes; fails it when too many wait already. */
  admit(passenger: Passenger): void {
    const lane = this.#idle.pop() ?? this.#newLane()
    if (lane !== null) this.#board(lane, passenger)
    else if (this.#waiting.size < EGRESS_WAITING_MAX) this.#waiting.add(passenger)
    else {
      const cause = new Error('Too many requests wait for a connection')
      passenger.fail(new EgressFailure('unreachable', { cause }))
    }
  }

  /** For a passenger that has not boarded. */
  leave(passenger: Passenger): void {
    this.#waiting.delete(passenger)
  }

  release(lane: Lane): void {
    if (!this.#busy.delete(lane)) return
    if (this.#closed) lane.drop()
    if (!lane.dropped) this.#idle.push(lane)
    // Later, when undici is done with the answer that has just ended.
    if (this.#waiting.size > 0) queueMicrotask(this.#boardNext)
  }

  /** Closes what is idle now, and the rest as it is released. */
  retire(): void {
    this.#closed = true
    for (const lane of this.#idle.splice(0)) lane.drop()
  }

  readonly #boardNext = (): void => {
    const [passenger] = this.#waiting
    if (passenger === undefined) return
    const lane = this.#idle.pop() ?? this.#newLane()
    if (lane === null) return
    this.#waiting.delete(passenger)
    this.#board(lane, passenger)
  }

  #board(lane: Lane, passenger: Passenger): void {
    this.#busy.add(lane)
    passenger.board(lane)
  }

  #newLane(): Lane | null {
    if (this.#busy.size >= EGRESS_CONNECTIONS_MAX) return null
    const lane: Lane = new Lane(this.target, this.#settings, this.memory, () => {
      const index = this.#idle.indexOf(lane)
      if (index !== -1) this.#idle.splice(index, 1)
    })
    return lane
  }
}
