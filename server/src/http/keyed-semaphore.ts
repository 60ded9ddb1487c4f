import { ServiceError } from '../base/service-error.ts'

/** The amount one owner holds, and its queue in order. */
interface OwnerState {
  acquired: number
  readonly queue: Waiter[]
}

interface Waiter {
  readonly amount: number
  readonly begin: () => void
}

/** One owner's place in the queue. */
export interface QueueSlot {
  /**
   * Resolves when the amount is acquired. Rejects with `tenant_busy`, at once if the queue is full, or with the reason passed to
   * `leave`.
   */
  readonly acquired: Promise<void>
  /** Leaves the queue, if nothing was acquired yet. */
  readonly leave: (reason: Error) => void
}

/**
 * A weighted semaphore per owner, all with the same limit, such as a memory quota: an owner that holds its whole limit waits
 * until it releases some; other owners are unaffected.
 */
export class KeyedSemaphore {
  readonly #max: number
  readonly #queueMax: number
  readonly #waitTimeout: (() => Promise<void>) | null
  readonly #owners = new Map<string, OwnerState>()

  /**
   * Each owner may hold `max` and have `queueMax` waiting. `waitTimeout` resolves when a waiter has waited long enough; null
   * waits without limit.
   */
  constructor(max: number, queueMax: number, waitTimeout: (() => Promise<void>) | null) {
    this.#max = max
    this.#queueMax = queueMax
    this.#waitTimeout = waitTimeout
  }

  /**
   * Acquires `amount`, first come, first served; more than the limit only if the owner holds nothing. Returns undefined if
   * acquired at once.
   */
  acquire(owner: string, amount: number): QueueSlot | undefined {
    const state = this.#stateOf(owner)
    if (state.queue.length > 0 || !this.#fits(state, amount))
      return this.#wait(owner, state, amount)
    state.acquired += amount
    return undefined
  }

  /** Like acquire(), for something that exists already and cannot wait. */
  forceAcquire(owner: string, amount: number): void {
    this.#stateOf(owner).acquired += amount
  }

  /** Whether `owner` holds more than the limit. */
  isOverLimit(owner: string): boolean {
    return (this.#owners.get(owner)?.acquired ?? 0) > this.#max
  }

  isHeld(owner: string): boolean {
    return (this.#owners.get(owner)?.acquired ?? 0) > 0
  }

  release(owner: string, amount: number): void {
    const state = this.#stateOf(owner)
    state.acquired -= amount
    this.#wakeWaiters(owner, state)
  }

  #stateOf(owner: string): OwnerState {
    let state = this.#owners.get(owner)
    if (state === undefined) this.#owners.set(owner, (state = { acquired: 0, queue: [] }))
    return state
  }

  #fits({ acquired }: OwnerState, amount: number): boolean {
    return acquired === 0 || acquired + amount <= this.#max
  }

  #wait(owner: string, state: OwnerState, amount: number): QueueSlot {
    if (state.queue.length >= this.#queueMax)
      return { acquired: Promise.reject(busy()), leave: () => {} }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { amount, begin: resolve }
    state.queue.push(waiter)
    const leave = (reason: Error): void => {
      const at = state.queue.indexOf(waiter)
      if (at < 0) return
      state.queue.splice(at, 1)
      reject(reason)
      this.#wakeWaiters(owner, state)
    }
    void this.#waitTimeout?.().then(() => leave(busy()))
    return { acquired: promise, leave }
  }

  #wakeWaiters(owner: string, state: OwnerState): void {
    const { queue } = state
    while (queue.length > 0 && this.#fits(state, queue[0]!.amount)) {
      const { amount, begin } = queue.shift()!
      state.acquired += amount
      begin()
    }
    if (state.acquired === 0) this.#owners.delete(owner)
  }
}

function busy(): ServiceError {
  return new ServiceError('tenant_busy')
}
