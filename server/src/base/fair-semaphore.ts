/** What may be held at a time. A limit that is left out is none. */
export interface SemaphoreLimits {
  /** What all owners may hold together. */
  readonly max?: number
  /** What one owner may hold. */
  readonly ownerMax?: number
  /** How many acquisitions of one owner may wait. */
  readonly queueMax?: number
  /** Resolves when an acquisition has waited long enough. */
  readonly waitTimeout?: () => Promise<void>
  /** Makes the error of an acquisition for which the queue is full, or which waited too long. */
  readonly refuse?: (why: 'queue-full' | 'timeout') => Error
}

/** One owner's place in the queue. */
export interface QueueSlot {
  /**
   * Resolves when the amount is acquired. Rejects with the error of `refuse`, at once if the queue is full, or with the reason
   * passed to `leave`.
   */
  readonly acquired: Promise<void>
  /** Leaves the queue, if nothing was acquired yet. */
  readonly leave: (reason: Error) => void
}

/**
 * A weighted semaphore that several owners share, with a limit for each owner and one for all.
 *
 * Within an owner, first come, first served. Between owners it is round-robin: however many acquisitions one owner queues, another
 * that is below its own limit waits for at most one of each. Nothing overtakes a waiter that only the limit of all holds up.
 * More than a limit can be acquired only while nothing is held of what it limits.
 */
export class FairSemaphore {
  readonly #max: number
  readonly #ownerMax: number
  readonly #queueMax: number
  readonly #waitTimeout: (() => Promise<void>) | undefined
  readonly #refuse: NonNullable<SemaphoreLimits['refuse']>
  /** The owners that hold something or wait. */
  readonly #owners = new Map<string, Owner>()
  /** Owners that wait; the one served last is last. */
  readonly #waiting = new Set<Owner>()
  #held = 0

  constructor(limits: SemaphoreLimits) {
    this.#max = limits.max ?? Infinity
    this.#ownerMax = limits.ownerMax ?? Infinity
    this.#queueMax = limits.queueMax ?? Infinity
    this.#waitTimeout = limits.waitTimeout
    this.#refuse = limits.refuse ?? ((why) => new Error(`Semaphore: ${why}`))
  }

  /** Acquires `amount`. Returns undefined if acquired at once. */
  acquire(owner: string, amount = 1): QueueSlot | undefined {
    if (this.tryAcquire(owner, amount)) return undefined
    if (this.#find(owner).queue.size >= this.#queueMax) {
      return { acquired: Promise.reject(this.#refuse('queue-full')), leave: () => {} }
    }
    return this.#enqueue(this.#stateOf(owner), amount)
  }

  /** Acquires `amount` and returns true, if it need not wait. */
  tryAcquire(owner: string, amount = 1): boolean {
    const known = this.#owners.get(owner)
    if (!this.#isFree(known ?? IDLE, amount)) return false
    if (amount > 0) this.#take(known ?? this.#stateOf(owner), amount)
    return true
  }

  /** Like acquire(), for something that exists already and cannot wait. */
  forceAcquire(owner: string, amount = 1): void {
    if (amount === 0) return
    const state = this.#stateOf(owner)
    this.#take(state, amount)
    // If it was this owner's turn, and no longer is, others may be served.
    if (this.#waiting.size > 0) this.#serve(state)
  }

  /** Releases some of what `owner` holds, to those that wait for it. */
  release(owner: string, amount = 1): void {
    const state = this.#stateOf(owner)
    state.held -= amount
    this.#held -= amount
    if (this.#waiting.size > 0) this.#serve(state)
    else this.#keepOrForget(state)
  }

  /** Runs `work` when its turn comes, and holds 1 until it is settled; settles as it does. */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const slot = this.acquire(owner)
    if (slot !== undefined) await slot.acquired
    try {
      return await work()
    } finally {
      this.release(owner)
    }
  }

  /** Whether acquire() would not wait. */
  isFree(owner: string, amount = 1): boolean {
    return this.#isFree(this.#find(owner), amount)
  }

  /** Whether acquire() would acquire or queue, rather than refuse. */
  hasCapacity(owner: string): boolean {
    return this.isFree(owner) || this.#find(owner).queue.size < this.#queueMax
  }

  /** Whether the owner's own limit leaves nothing. */
  isFull(owner: string): boolean {
    return !this.#fitsOwner(this.#find(owner), 1)
  }

  /** The owners whose own limit leaves nothing. */
  fullOwners(): string[] {
    return this.#owners
      .keys()
      .filter((it) => this.isFull(it))
      .toArray()
  }

  /** What all owners hold together. */
  get held(): number {
    return this.#held
  }

  isHeld(owner: string): boolean {
    return this.#find(owner).held > 0
  }

  /** Whether `owner` holds more than its own limit. */
  isOverLimit(owner: string): boolean {
    return this.#find(owner).held > this.#ownerMax
  }

  #isFree(state: Owner, amount: number): boolean {
    if (state.queue.size > 0 || !this.#fitsOwner(state, amount) || !this.#fits(amount)) return false
    const isOwed = this.#max < Infinity && this.#waiting.size > 0
    return !isOwed || this.#next(this.#waiting) === undefined
  }

  #enqueue(state: Owner, amount: number): QueueSlot {
    const { promise: acquired, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { amount, begin: resolve }
    state.queue.add(waiter)
    this.#waiting.add(state)
    const leave = (reason: Error): void => {
      if (!state.queue.delete(waiter)) return
      reject(reason)
      this.#serve(state)
    }
    void this.#waitTimeout?.().then(() => {
      if (state.queue.has(waiter)) leave(this.#refuse('timeout'))
    })
    return { acquired, leave }
  }

  /** Lets waiters acquire what they can, after a release or departure of `changed`. */
  #serve(changed: Owner): void {
    // Without a limit of all, what one owner releases is of use to itself alone.
    const candidates = this.#max === Infinity ? [changed] : this.#waiting
    for (;;) {
      const owner = this.#next(candidates)
      const [first] = owner?.queue ?? []
      if (owner === undefined || first === undefined || !this.#fits(first.amount)) break
      owner.queue.delete(first)
      this.#take(owner, first.amount)
      this.#waiting.delete(owner)
      this.#keepOrForget(owner)
      first.begin()
    }
    if (changed.queue.size === 0) this.#waiting.delete(changed)
    this.#keepOrForget(changed)
  }

  #keepOrForget(owner: Owner): void {
    if (owner.queue.size > 0) this.#waiting.add(owner)
    else if (owner.held === 0) this.#owners.delete(owner.name)
  }

  /** Returns whose turn it is: the first of `owners` whose own limit lets its first waiter acquire. */
  #next(owners: Iterable<Owner>): Owner | undefined {
    for (const it of owners) {
      const [first] = it.queue
      if (first !== undefined && this.#fitsOwner(it, first.amount)) return it
    }
    return undefined
  }

  #fits(amount: number): boolean {
    return this.#held === 0 || this.#held + amount <= this.#max
  }

  #fitsOwner({ held }: Owner, amount: number): boolean {
    return held === 0 || held + amount <= this.#ownerMax
  }

  #take(state: Owner, amount: number): void {
    state.held += amount
    this.#held += amount
  }

  #find(name: string): Owner {
    return this.#owners.get(name) ?? IDLE
  }

  #stateOf(name: string): Owner {
    let state = this.#owners.get(name)
    if (state === undefined) this.#owners.set(name, (state = { name, held: 0, queue: new Set() }))
    return state
  }
}

interface Owner {
  readonly name: string
  held: number
  /** In order. */
  readonly queue: Set<Waiter>
}

interface Waiter {
  readonly amount: number
  readonly begin: () => void
}

const IDLE: Owner = { name: '', held: 0, queue: new Set() }
