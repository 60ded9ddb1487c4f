/**
 * Admission control: quotas for large requests in memory, that is their bodies, the data they read, and their answers until the
 * client has taken them. Each tenant has its own quota for all three and waits only for itself. Decision 0057.
 */
import type { FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { isStranger, type Principal } from '../base/access.ts'
import { FairSemaphore, type QueueSlot } from '../base/fair-semaphore.ts'
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
import { ServiceError } from '../base/service-error.ts'
import type { Clock } from '../ports/clock.ts'
import { brokenOff } from './steps/whole-body.ts'

/** The quotas of all tenants. */
export interface TenantQuotas {
  readonly bodies: FairSemaphore
  readonly answers: FairSemaphore
  /** Slots for reads of unknown size. */
  readonly reads: FairSemaphore
  /** Slots for requests that turned out to read or produce much. */
  readonly large: FairSemaphore
  /** Memory for request bodies made from tokens, on their way to a destination. */
  readonly made: FairSemaphore
}

export function createTenantQuotas(clock: Pick<Clock, 'after'>): TenantQuotas {
  const quota = (ownerMax: number, queueMax = Infinity): FairSemaphore =>
    new FairSemaphore({
      ownerMax,
      queueMax,
      waitTimeout: () => clock.after(QUOTA_WAIT_MS_MAX),
      refuse: () => new ServiceError('tenant_busy'),
    })
  return {
    bodies: quota(QUOTA_BYTES_MAX, LARGE_BODIES_WAITING_MAX),
    answers: quota(QUOTA_BYTES_MAX),
    reads: quota(READS_AT_ONCE),
    large: quota(LARGE_READS_AT_ONCE),
    made: quota(QUOTA_BYTES_MAX),
  }
}

/**
 * One request's use of its tenant's quotas. It waits for its body first, then for a read slot, and then until earlier answers
 * were taken.
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
   * Reserves memory for the rest of a body of `most` bytes at most, or as much as the largest body takes. Returns undefined if
   * reserved at once. Rejects with `tenant_busy`.
   */
  reserveBody(most: number): Promise<void> | undefined {
    const bytes = Math.min(most, BODY_BYTES_MAX)
    const waiting = this.#tenantQuotas.bodies.acquire(this.#owner, bytes)
    if (waiting !== undefined) return this.#wait(waiting).then(() => this.#onBodyReserved(bytes))
    this.#onBodyReserved(bytes)
    return undefined
  }

  /** Releases the reservation of a body that is forwarded as it comes after all. */
  releaseBody(): void {
    if (this.#body > 0) this.#tenantQuotas.bodies.release(this.#owner, this.#body)
    this.#body = 0
  }

  /**
   * Waits until it may read one item that may be long, or many. In this order: for its turn on a pipelined connection, for one
   * of the tenant's few read slots, and until clients have taken enough pending answers. Returns undefined if it need not wait.
   * Rejects with `tenant_busy`.
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
   * Waits for one of the few slots for large reads, if the request turned out to read or produce much; a request that `sends` its
   * result also waits until enough earlier results are on their way. Once the request is handled it waits for nothing. Rejects
   * with `tenant_busy`.
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
      // Requests that held a slot meanwhile may have produced too much.
      if (late) large.release(this.#owner, 1)
      else if (isOverLimit()) this.#releaseLargeRead()
    }
  }

  /** Releases the slot for large reads. `kept` bytes of its result stay counted until the request is handled. */
  releaseLargeRead(kept: number): void {
    this.#releaseLargeRead()
    if (kept < LARGE_BYTES_MIN) return
    this.#tenantQuotas.made.forceAcquire(this.#owner, kept)
    this.#made += kept
    this.#releaseMemory()
  }

  /** Counts an answer of `bytes`, which exists already. A client that takes nothing of it for long is disconnected. */
  countAnswer(bytes: number): void {
    this.#tenantQuotas.answers.forceAcquire(this.#owner, bytes)
    this.#answer += bytes
    const response = this.#response
    if (response.socket === null) response.once('socket', () => hurry(response))
    else hurry(response)
  }

  /** Marks the request as done. */
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

  /** Waits until the client is gone at most: a request without one keeps no queue slot. */
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

  /** Runs once the request is handled and its answer was taken, or its client is gone. */
  #releaseMemory(): void {
    if (!this.#handled || !this.#closed) return
    this.releaseBody()
    if (this.#answer > 0) this.#tenantQuotas.answers.release(this.#owner, this.#answer)
    this.#answer = 0
    if (this.#made > 0) this.#tenantQuotas.made.release(this.#owner, this.#made)
    this.#made = 0
  }
}

/** Closes the connection of a client that takes nothing of `response` for ANSWER_PAUSE_MS_MAX. */
function hurry(response: ServerResponse): void {
  const { socket } = response
  // In-process requests have no socket.
  if (!(socket instanceof Socket)) return
  socket.setTimeout(QUIET_MS)
  // Also if other code listens on the socket: the next request on the connection, whose body is coming in.
  response.on('timeout', () => response.destroy())
  // Unless Node has done so, which has timeouts of its own between requests.
  response.once('finish', () => {
    if (socket.timeout === QUIET_MS) socket.setTimeout(0)
  })
}

/** Half, since Node checks twice: at the first check it sees progress, because the network took some bytes. */
const QUIET_MS = ANSWER_PAUSE_MS_MAX / 2

/** Returns the quota of a request, created on first use. */
export function quotaOf(
  request: FastifyRequest,
  response: ServerResponse,
  tenantQuotas: TenantQuotas,
): RequestQuota {
  return (request.quota ??= new RequestQuota(tenantQuotas, response, request.principal!))
}

/**
 * Returns the owner of a quota. Keys of one type share it; each authorized session has its own, and so has the tenant's code,
 * which a request may wait for. So the holder of a widely known key cannot use up the quota of other keys, nor have more by opening
 * sessions.
 */
function ownerOf(principal: Principal): string {
  const { tenantId, type, keyId, ephemeral } = principal
  if (ephemeral === true) return `${tenantId} ephemeral`
  if (isStranger(principal)) return `${tenantId} public`
  return type === 'session' ? `${tenantId} ${keyId}` : `${tenantId} ${type}`
}
