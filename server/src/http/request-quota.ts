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
  LARGE_BODIES_WAITING_MAX,
  LARGE_BYTES_MIN,
  READS_AT_ONCE,
  LARGE_READS_AT_ONCE,
  QUOTA_BYTES_MAX,
  QUOTA_WAIT_MS_MAX,
} from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import { KeyedSemaphore, type QueueSlot } from './keyed-semaphore.ts'
import { brokenOff } from './whole-body.ts'

/** The quotas of all tenants. */
export interface TenantQuotas {
  readonly bodies: KeyedSemaphore
  readonly answers: KeyedSemaphore
  /** Of reads of which nobody knows yet how much they find. */
  readonly reads: KeyedSemaphore
  /** Of those that turned out to read or make much. */
  readonly large: KeyedSemaphore
  /** What was made of tokens and is on its way to a destination. */
  readonly made: KeyedSemaphore
}

export function createTenantQuotas(clock: Pick<Clock, 'after'>): TenantQuotas {
  const waitTimeout = (): Promise<void> => clock.after(QUOTA_WAIT_MS_MAX)
  return {
    bodies: new KeyedSemaphore(QUOTA_BYTES_MAX, LARGE_BODIES_WAITING_MAX, waitTimeout),
    answers: new KeyedSemaphore(QUOTA_BYTES_MAX, Infinity, waitTimeout),
    reads: new KeyedSemaphore(READS_AT_ONCE, Infinity, waitTimeout),
    large: new KeyedSemaphore(LARGE_READS_AT_ONCE, Infinity, waitTimeout),
    made: new KeyedSemaphore(QUOTA_BYTES_MAX, Infinity, waitTimeout),
  }
}

/**
 * What one request takes of its tenant's quotas. It waits for its body first, then for a read slot, and then
 * until the answers of others were taken.
 */
export class RequestQuota {
  readonly #tenantQuotas: TenantQuotas
  readonly #response: ServerResponse
  readonly #owner: string
  #body = 0
  #reads = 0
  #answer = 0
  #large = false
  #made = 0
  #handled = false
  #closed: boolean
  #waiting: QueueSlot | null = null

  constructor(tenantQuotas: TenantQuotas, response: ServerResponse, principal: Principal) {
    this.#tenantQuotas = tenantQuotas
    this.#response = response
    this.#owner = ownerOf(principal)
    this.#closed = response.closed
    response.once('close', () => {
      this.#closed = true
      this.#waiting?.leave(brokenOff(undefined))
      this.#releaseMemory()
    })
  }

  /**
   * Reserves memory for the rest of a body of so many bytes; null for as many as there may be. Returns undefined when
   * it is reserved at once. Rejects with `tenant_busy`.
   */
  reserveBody(length: number | null): Promise<void> | undefined {
    const bytes = Math.min(length ?? BODY_BYTES_MAX, BODY_BYTES_MAX)
    const waiting = this.#tenantQuotas.bodies.acquire(this.#owner, bytes)
    if (waiting !== undefined) return this.#wait(waiting).then(() => this.#onBodyReserved(bytes))
    this.#onBodyReserved(bytes)
    return undefined
  }

  /** Releases what was reserved for a body that is forwarded as it comes after all. */
  releaseBody(): void {
    if (this.#body > 0) this.#tenantQuotas.bodies.release(this.#owner, this.#body)
    this.#body = 0
  }

  /**
   * Waits for a slot to read one thing that may be long, or many: on its connection, where several requests were sent
   * without waiting for answers, among the few that read at a time, and until answers are taken, where too many are not.
   * Returns undefined when it has one at once. Rejects with `tenant_busy`.
   */
  acquireReads(cost: 'single' | 'list'): Promise<void> | undefined {
    if (this.#response.socket === null) return this.#acquireReadsLater(cost)
    const { answers, reads } = this.#tenantQuotas
    const large = cost === 'list' || answers.isHeld(this.#owner)
    const amount = large ? READS_AT_ONCE / LARGE_READS_AT_ONCE : 1
    const waiting = reads.acquire(this.#owner, amount)
    if (waiting !== undefined) return this.#wait(waiting).then(() => this.#onReadsAcquired(amount))
    return this.#onReadsAcquired(amount)
  }

  /**
   * Waits until it is one of the few that read or make much, if it found out on its way that it does; one that `sends`
   * what it makes, also until what others made is on its way. Once it is handled nothing is left to wait for. Rejects with
   * `tenant_busy`.
   */
  async acquireLargeRead(sends: boolean): Promise<void> {
    const { large, made } = this.#tenantQuotas
    const isOverLimit = (): boolean => sends && made.isOverLimit(this.#owner)
    while (!this.#large && !this.#handled) {
      const sent = isOverLimit() ? made.acquire(this.#owner, 0) : undefined
      if (sent !== undefined) await this.#wait(sent)
      const slot = large.acquire(this.#owner, 1)
      if (slot !== undefined) await this.#wait(slot)
      const late = this.#large || this.#handled
      this.#large ||= !late
      // Those who had a slot meanwhile may have made too much.
      if (late) large.release(this.#owner, 1)
      else if (isOverLimit()) this.#releaseLargeRead()
    }
  }

  /** Releases its slot for reading or making much. So many bytes of what came of it are kept until it is handled. */
  releaseLargeRead(kept: number): void {
    this.#releaseLargeRead()
    if (kept < LARGE_BYTES_MIN) return
    this.#tenantQuotas.made.forceAcquire(this.#owner, kept)
    this.#made += kept
    this.#releaseMemory()
  }

  /** Counts an answer of so many bytes, which is there already. A client that takes nothing of it for long is disconnected. */
  countAnswer(bytes: number): void {
    this.#tenantQuotas.answers.forceAcquire(this.#owner, bytes)
    this.#answer += bytes
    const response = this.#response
    if (response.socket === null) response.once('socket', () => hurry(response))
    else hurry(response)
  }

  /** Nothing more is done for it. */
  handled(): void {
    this.#handled = true
    if (this.#reads > 0) this.#tenantQuotas.reads.release(this.#owner, this.#reads)
    this.#reads = 0
    this.#releaseLargeRead()
    this.#releaseMemory()
  }

  #releaseLargeRead(): void {
    if (this.#large) this.#tenantQuotas.large.release(this.#owner, 1)
    this.#large = false
  }

  async #acquireReadsLater(cost: 'single' | 'list'): Promise<void> {
    const response = this.#response
    if (!response.destroyed) {
      await new Promise((resolve) => response.once('socket', resolve).once('close', resolve))
    }
    if (response.destroyed) throw brokenOff(undefined)
    await this.acquireReads(cost)
  }

  #onReadsAcquired(amount: number): Promise<void> | undefined {
    this.#reads = amount
    const { answers } = this.#tenantQuotas
    if (!answers.isOverLimit(this.#owner)) return undefined
    const waiting = answers.acquire(this.#owner, 0)
    return waiting === undefined ? undefined : this.#wait(waiting)
  }

  /** Until the client is gone: a request without one keeps no queue slot. */
  async #wait(waiting: QueueSlot): Promise<void> {
    this.#waiting = waiting
    if (this.#closed) waiting.leave(brokenOff(undefined))
    try {
      await waiting.acquired
    } finally {
      this.#waiting = null
    }
  }

  #onBodyReserved(bytes: number): void {
    this.#body = bytes
    this.#releaseMemory()
  }

  /** When it is handled and its answer was taken, or nobody is there any more to take it. */
  #releaseMemory(): void {
    if (!this.#handled || !this.#closed) return
    this.releaseBody()
    if (this.#answer > 0) this.#tenantQuotas.answers.release(this.#owner, this.#answer)
    this.#answer = 0
    if (this.#made > 0) this.#tenantQuotas.made.release(this.#owner, this.#made)
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

/** Returns the quota of a request, made when it is first asked for. */
export function quotaOf(
  request: FastifyRequest,
  response: ServerResponse,
  tenantQuotas: TenantQuotas,
): RequestQuota {
  return (request.quota ??= new RequestQuota(tenantQuotas, response, request.principal!))
}

/**
 * Who shares a quota: keys of a kind, each session by itself, and code of the tenant, which somebody may wait for. So whoever has a
 * key that many know cannot use up the quota of those who have another.
 */
function ownerOf({ tenantId, type, keyId, ephemeral }: Principal): string {
  if (type === 'session') return `${tenantId} ${keyId}`
  return ephemeral === true ? `${tenantId} ephemeral` : `${tenantId} ${type}`
}
