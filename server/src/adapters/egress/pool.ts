import type { Agent } from 'node:http'
import { EGRESS_CONNECTIONS_MAX, EGRESS_WAITING_MAX } from '../../base/limits.ts'
import { EgressFailure } from '../../world/egress.ts'
import { DialAgent } from './dial-agent.ts'
import type { DialSettings, Target, TlsMemory } from './dial.ts'
import { Lane, type ReaderOptions } from './lane.ts'
import { authorityOf } from './egress-endpoint.ts'

/** What waits for its turn on a connection. */
export interface Passenger {
  /** Its turn has come; when it is done, it says so by release(). */
  board(): void
  fail(error: unknown): void
}

/**
 * The connections of one owner to one destination: used again one after the other, never by somebody else.
 *
 * A request has a connection to itself. Those that find none free wait in a queue, and leave it when their time is
 * up. The lane used last is taken first, so that connections nobody needs fall idle and are closed.
 */
export class Pool {
  readonly #target: Target
  readonly #settings: DialSettings
  readonly readerOptions: ReaderOptions
  readonly #memory: TlsMemory = { session: undefined }
  readonly #idle: Lane[] = []
  readonly #waiting = new Set<Passenger>()
  #agent: DialAgent | null = null
  #aboard = 0
  #closed = false

  constructor(target: Target, settings: DialSettings, readerOptions: ReaderOptions) {
    this.#target = target
    this.#settings = settings
    this.readerOptions = readerOptions
  }

  /** As the Host of a request has it. */
  get authority(): string {
    return authorityOf(this.#target.endpoint)
  }

  /** For whoever boards and goes by Node's own client. */
  get agent(): Agent {
    return (this.#agent ??= new DialAgent(this.#target, this.#settings, this.#memory))
  }

  /** Boards `passenger` at once, or when its turn comes; fails it when too many wait already. */
  admit(passenger: Passenger): void {
    if (this.#aboard < EGRESS_CONNECTIONS_MAX) this.#board(passenger)
    else if (this.#waiting.size < EGRESS_WAITING_MAX) this.#waiting.add(passenger)
    else {
      const cause = new Error('Too many requests wait for a connection')
      passenger.fail(new EgressFailure('unreachable', { cause }))
    }
  }

  /** For whoever boards and goes by undici. */
  takeLane(): Lane {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const lane: Lane = new Lane(
      this.#target,
      this.#settings,
      this.#memory,
      this.readerOptions,
      () => {
        const index = this.#idle.indexOf(lane)
        if (index !== -1) this.#idle.splice(index, 1)
      },
    )
    return lane
  }

  /** For a passenger that has not boarded. */
  leave(passenger: Passenger): void {
    this.#waiting.delete(passenger)
  }

  /** For one that has, with its lane if it took one. */
  release(lane: Lane | null): void {
    this.#aboard -= 1
    if (lane !== null && !lane.dropped) {
      if (this.#closed) lane.drop()
      else this.#idle.push(lane)
    }
    // Later, when undici is done with the answer that has just ended.
    if (this.#waiting.size > 0) queueMicrotask(this.#boardNext)
    else if (this.#closed && this.#aboard === 0) this.#agent?.destroy()
  }

  /** Closes what is idle now, and the rest as it is released. */
  retire(): void {
    this.#closed = true
    for (const lane of this.#idle.splice(0)) lane.drop()
    if (this.#aboard === 0) this.#agent?.destroy()
  }

  readonly #boardNext = (): void => {
    const [passenger] = this.#waiting
    if (passenger === undefined || this.#aboard >= EGRESS_CONNECTIONS_MAX) return
    this.#waiting.delete(passenger)
    this.#board(passenger)
  }

  #board(passenger: Passenger): void {
    this.#aboard += 1
    passenger.board()
  }
}
