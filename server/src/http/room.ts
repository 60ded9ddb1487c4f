/**
 * What requests keep in memory, where that is much: their bodies, what they read, and their answers until somebody has
 * taken them. Each tenant has so much of all three, and waits for itself. Decision 0057.
 */
import type { FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Principal } from '../base/access.ts'
import {
  BODY_BYTES_MAX,
  LONG_BYTES_MIN,
  READS_AT_ONCE,
  READS_LONG_AT_ONCE,
  REQUEST_TIMEOUT_MS,
  SHARE_BYTES_MAX,
  SHARE_WAIT_MS_MAX,
} from '../base/limits.ts'
import type { Clock } from '../world/clock.ts'
import { Shares } from './shares.ts'

/** The shares of everybody. */
export interface Memory {
  readonly bodies: Shares
  readonly answers: Shares
  /** Of reads of which nobody knows yet how much they find. */
  readonly reads: Shares
}

export function memoryOf(clock: Pick<Clock, 'after'>): Memory {
  const patience = (): Promise<void> => clock.after(SHARE_WAIT_MS_MAX)
  return {
    bodies: new Shares(SHARE_BYTES_MAX, patience),
    answers: new Shares(SHARE_BYTES_MAX, patience),
    reads: new Shares(READS_AT_ONCE, patience),
  }
}

/**
 * What one request takes of its tenant's share. It waits for its body first, then for its turn to read, and then for
 * the answers of others, which wait for nothing but those who asked: so nobody waits in a circle.
 */
export class Room {
  readonly #memory: Memory
  readonly #response: ServerResponse
  readonly #owner: string
  #body = 0
  #reads = 0
  #answer = 0
  #handled = false
  #closed: boolean

  constructor(memory: Memory, response: ServerResponse, principal: Principal) {
    this.#memory = memory
    this.#response = response
    this.#owner = ownerOf(principal)
    this.#closed = response.closed
    response.once('close', () => {
      this.#closed = true
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
    if (waiting !== undefined) return waiting.then(() => this.#haveBody(bytes))
    this.#haveBody(bytes)
    return undefined
  }

  /** Gives the room back of a body that is passed on as it comes after all. */
  letGoOfBody(): void {
    if (this.#body > 0) this.#memory.bodies.give(this.#owner, this.#body)
    this.#body = 0
  }

  /**
   * Waits for its turn to read one token, or many: on its connection, where several requests were sent without waiting for
   * answers, among the few that read at a time, and until answers are taken, where too many are not. Returns undefined when
   * it is its turn. Rejects with `tenant_busy`.
   */
  takeReads(tokens: 'one' | 'many'): Promise<void> | undefined {
    if (this.#response.socket === null) return this.#takeReadsLater(tokens)
    const { answers, reads } = this.#memory
    const long = tokens === 'many' || answers.isTaken(this.#owner)
    const amount = long ? READS_AT_ONCE / READS_LONG_AT_ONCE : 1
    const waiting = reads.take(this.#owner, amount)
    if (waiting !== undefined) return waiting.then(() => this.#haveReads(amount))
    return this.#haveReads(amount)
  }

  /** Counts an answer of so many bytes, which is there already. Whoever takes nothing of it for so long is hung up on. */
  addAnswer(bytes: number): void {
    this.#memory.answers.add(this.#owner, bytes)
    this.#answer += bytes
    const { socket } = this.#response
    // Code that the service runs itself comes over none.
    if (socket instanceof Socket) socket.setTimeout(REQUEST_TIMEOUT_MS)
  }

  /** Nothing more is done for it. */
  handled(): void {
    this.#handled = true
    if (this.#reads > 0) this.#memory.reads.give(this.#owner, this.#reads)
    this.#reads = 0
    this.#giveBack()
  }

  async #takeReadsLater(tokens: 'one' | 'many'): Promise<void> {
    // Of a connection that is gone by then nobody hears any more, and nothing was taken for it.
    await new Promise((resolve) => this.#response.once('socket', resolve))
    await this.takeReads(tokens)
  }

  #haveReads(amount: number): Promise<void> | undefined {
    this.#reads = amount
    const { answers } = this.#memory
    return answers.isOver(this.#owner) ? answers.take(this.#owner, 0) : undefined
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
  }
}

/** The room of a request, which it has from when it is asked for first. */
export function roomOf(request: FastifyRequest, response: ServerResponse, memory: Memory): Room {
  return (request.room ??= new Room(memory, response, request.principal!))
}

/** Whether an answer, or what came of a body, is worth counting. */
export function isLong(bytes: number): boolean {
  return bytes >= LONG_BYTES_MIN
}

/**
 * Those who hold keys that many know, and code of a tenant that somebody waits for, are owners of their own: they
 * cannot take the room of those who wait for them.
 */
function ownerOf({ tenantId, type, lent }: Principal): string {
  return lent === true ? `${tenantId} lent` : `${tenantId} ${type}`
}
