/**
 * What requests keep in memory, where that is much: their bodies, what they read, and their answers until somebody has
 * taken them. Each tenant has so much of all three, and waits for itself. Decision 0057.
 */
import type { FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Principal } from '../base/access.ts'
import {
  ANSWER_PAUSE_MS_MAX,
  BODY_BYTES_MAX,
  LONG_BODIES_WAITING_MAX,
  LONG_BYTES_MIN,
  READS_AT_ONCE,
  READS_LONG_AT_ONCE,
  SHARE_BYTES_MAX,
  SHARE_WAIT_MS_MAX,
} from '../base/limits.ts'
import type { Clock } from '../world/clock.ts'
import { Shares, type Waiting } from './shares.ts'
import { brokenOff } from './whole-body.ts'

/** The shares of everybody. */
export interface Memory {
  readonly bodies: Shares
  readonly answers: Shares
  /** Of reads of which nobody knows yet how much they find. */
  readonly reads: Shares
  /** Of those that turned out to read or make much. */
  readonly long: Shares
  /** What was made of tokens and is on its way to a destination. */
  readonly made: Shares
}

export function memoryOf(clock: Pick<Clock, 'after'>): Memory {
  const patience = (): Promise<void> => clock.after(SHARE_WAIT_MS_MAX)
  return {
    bodies: new Shares(SHARE_BYTES_MAX, LONG_BODIES_WAITING_MAX, patience),
    answers: new Shares(SHARE_BYTES_MAX, Infinity, patience),
    reads: new Shares(READS_AT_ONCE, Infinity, patience),
    long: new Shares(READS_LONG_AT_ONCE, Infinity, patience),
    made: new Shares(SHARE_BYTES_MAX, Infinity, patience),
  }
}

/**
 * What one request takes of its tenant's share. It waits for its body first, then for its turn to read, and then for
 * the answers of others, which wait for those who asked.
 */
export class Room {
  readonly #memory: Memory
  readonly #response: ServerResponse
  readonly #owner: string
  #body = 0
  #reads = 0
  #answer = 0
  #long = false
  #made = 0
  #handled = false
  #closed: boolean
  #waiting: Waiting | null = null

  constructor(memory: Memory, response: ServerResponse, principal: Principal) {
    this.#memory = memory
    this.#response = response
    this.#owner = ownerOf(principal)
    this.#closed = response.closed
    response.once('close', () => {
      this.#closed = true
      this.#waiting?.leave(brokenOff(undefined))
      this.#giveBack()
    })
  }

  /**
   * Takes room for the rest of a body of so many bytes; null for as many as there may be. Returns undefined when there is
   * some. Rejects with `tenant_busy`.
   */
  takeBody(length: number | null): Promise<void> | undefined {
    const bytes = Math.min(length ?? BODY_BYTES_MAX, BODY_BYTES_MAX)
    const waiting = this.#memory.bodies.take(this.#owner, bytes)
    if (waiting !== undefined) return this.#wait(waiting).then(() => this.#haveBody(bytes))
    this.#haveBody(bytes)
    return undefined
  }

  /** Gives the room back of a body that is passed on as it comes after all. */
  letGoOfBody(): void {
    if (this.#body > 0) this.#memory.bodies.give(this.#owner, this.#body)
    this.#body = 0
  }

  /**
   * Waits for its turn to read one thing that may be long, or many: on its connection, where several requests were sent
   * without waiting for answers, among the few that read at a time, and until answers are taken, where too many are not.
   * Returns undefined when it is its turn. Rejects with `tenant_busy`.
   */
  takeReads(found: 'one' | 'many'): Promise<void> | undefined {
    if (this.#response.socket === null) return this.#takeReadsLater(found)
    const { answers, reads } = this.#memory
    const long = found === 'many' || answers.isTaken(this.#owner)
    const amount = long ? READS_AT_ONCE / READS_LONG_AT_ONCE : 1
    const waiting = reads.take(this.#owner, amount)
    if (waiting !== undefined) return this.#wait(waiting).then(() => this.#haveReads(amount))
    return this.#haveReads(amount)
  }

  /**
   * Waits until it is one of the few that read or make much, if it found out on its way that it does; one that `sends`
   * what it makes, also until what others made is on its way. Once it is handled nothing is left to wait for. Rejects with
   * `tenant_busy`.
   */
  async takeLong(sends: boolean): Promise<void> {
    const { long, made } = this.#memory
    const isOver = (): boolean => sends && made.isOver(this.#owner)
    while (!this.#long && !this.#handled) {
      const sent = isOver() ? made.take(this.#owner, 0) : undefined
      if (sent !== undefined) await this.#wait(sent)
      const turn = long.take(this.#owner, 1)
      if (turn !== undefined) await this.#wait(turn)
      const late = this.#long || this.#handled
      this.#long ||= !late
      // Those who had a turn meanwhile may have made too much.
      if (late) long.give(this.#owner, 1)
      else if (isOver()) this.#endLong()
    }
  }

  /** Ends its turn to read or make much. So many bytes of what came of it are kept until it is handled. */
  endLong(kept: number): void {
    this.#endLong()
    if (kept < LONG_BYTES_MIN) return
    this.#memory.made.add(this.#owner, kept)
    this.#made += kept
    this.#giveBack()
  }

  /** Counts an answer of so many bytes, which is there already. Whoever takes nothing of it for long is hung up on. */
  addAnswer(bytes: number): void {
    this.#memory.answers.add(this.#owner, bytes)
    this.#answer += bytes
    const response = this.#response
    if (response.socket === null) response.once('socket', () => hurry(response))
    else hurry(response)
  }

  /** Nothing more is done for it. */
  handled(): void {
    this.#handled = true
    if (this.#reads > 0) this.#memory.reads.give(this.#owner, this.#reads)
    this.#reads = 0
    this.#endLong()
    this.#giveBack()
  }

  #endLong(): void {
    if (this.#long) this.#memory.long.give(this.#owner, 1)
    this.#long = false
  }

  async #takeReadsLater(found: 'one' | 'many'): Promise<void> {
    const response = this.#response
    if (!response.destroyed) {
      await new Promise((resolve) => response.once('socket', resolve).once('close', resolve))
    }
    if (response.destroyed) throw brokenOff(undefined)
    await this.takeReads(found)
  }

  #haveReads(amount: number): Promise<void> | undefined {
    this.#reads = amount
    const { answers } = this.#memory
    if (!answers.isOver(this.#owner)) return undefined
    const waiting = answers.take(this.#owner, 0)
    return waiting === undefined ? undefined : this.#wait(waiting)
  }

  /** Until it is gone: nobody has a place in a line who is not there. */
  async #wait(waiting: Waiting): Promise<void> {
    this.#waiting = waiting
    if (this.#closed) waiting.leave(brokenOff(undefined))
    try {
      await waiting.taken
    } finally {
      this.#waiting = null
    }
  }

  #haveBody(bytes: number): void {
    this.#body = bytes
    this.#giveBack()
  }

  /** When it is handled and its answer was taken, or nobody is there any more to take it. */
  #giveBack(): void {
    if (!this.#handled || !this.#closed) return
    this.letGoOfBody()
    if (this.#answer > 0) this.#memory.answers.give(this.#owner, this.#answer)
    this.#answer = 0
    if (this.#made > 0) this.#memory.made.give(this.#owner, this.#made)
    this.#made = 0
  }
}

/** Has the connection closed of whoever takes nothing of `response` for ANSWER_PAUSE_MS_MAX. */
function hurry(response: ServerResponse): void {
  const { socket } = response
  // Code that the service runs itself comes over none.
  if (!(socket instanceof Socket)) return
  socket.setTimeout(QUIET_MS)
  // Also where somebody else hears of it: the next request on the connection, whose body is coming in.
  response.on('timeout', () => response.destroy())
  // Unless Node has done so, which has times of its own between requests.
  response.once('finish', () => {
    if (socket.timeout === QUIET_MS) socket.setTimeout(0)
  })
}

/** Node looks twice, since at first it sees that something was taken: by the network. */
const QUIET_MS = ANSWER_PAUSE_MS_MAX / 2

/** The room of a request, which it has from when it is asked for first. */
export function roomOf(request: FastifyRequest, response: ServerResponse, memory: Memory): Room {
  return (request.room ??= new Room(memory, response, request.principal!))
}

/**
 * Who shares: keys of a kind, each session by itself, and code of the tenant, which somebody may wait for. So whoever has a
 * key that many know cannot take the room of those who have another.
 */
function ownerOf({ tenantId, type, keyId, lent }: Principal): string {
  if (type === 'session') return `${tenantId} ${keyId}`
  return lent === true ? `${tenantId} lent` : `${tenantId} ${type}`
}
