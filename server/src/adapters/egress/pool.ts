import type { Agent } from 'node:http'
import { FairSemaphore, type QueueSlot } from '../../base/fair-semaphore.ts'
import {
  EGRESS_CONNECTIONS_MAX,
  EGRESS_EARLY_CLOSE_MS,
  EGRESS_WAITING_MAX,
} from '../../base/limits.ts'
import { EgressFailure } from '../../ports/egress.ts'
import { DialAgent } from './dial-agent.ts'
import type { DialSettings, Target, TlsMemory } from './dial.ts'
import { PooledConnection, type ReaderOptions } from './pooled-connection.ts'
import { authorityOf } from './egress-endpoint.ts'

/** A call queued for a connection. */
export interface QueuedCall {
  /** Starts the call, now that there is a connection for it; the call ends it with release(). */
  begin(): void
  fail(error: unknown): void
}

/** Whether a destination keeps connections open after a response, as far as seen. */
export interface PoolHistory {
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  /** Notes a close soon after a response, or one that crossed a request. */
  readonly noteClose: () => void
  /** Whether there was none lately. */
  readonly isSteady: () => boolean
}

/**
 * The connections of one owner to one destination, reused sequentially and never shared with another owner.
 *
 * Each request has a connection to itself. When none is free, requests queue until their timeout. The most recently
 * used connection is taken first, so that surplus ones become idle and close.
 *
 * A destination may close a connection right after a response, and the close then crosses the next request. After one
 * such close, requests that must not be sent twice get new connections for EGRESS_CLOSE_MEMORY_MS. Decision 0068.
 */
export class Pool {
  readonly #target: Target
  readonly #settings: DialSettings
  readonly readerOptions: ReaderOptions
  readonly history: PoolHistory
  readonly #memory: TlsMemory = { session: undefined }
  /** The most recently used comes last. */
  readonly #idle: PooledConnection[] = []
  readonly #slots = new FairSemaphore({
    max: EGRESS_CONNECTIONS_MAX,
    queueMax: EGRESS_WAITING_MAX,
    refuse: () => new EgressFailure('unreachable', { cause: new Error(QUEUE_FULL) }),
  })
  readonly #waiting = new Map<QueuedCall, QueueSlot>()
  #agent: DialAgent | null = null
  #answered = false
  #closed = false

  constructor(
    target: Target,
    settings: DialSettings,
    readerOptions: ReaderOptions,
    history: PoolHistory,
  ) {
    this.#target = target
    this.#settings = settings
    this.readerOptions = readerOptions
    this.history = history
  }

  /** The value of the Host field. */
  get authority(): string {
    return authorityOf(this.#target.endpoint)
  }

  /** Whether the destination was never seen to answer, and is spoken to without TLS. */
  get mayExpectTls(): boolean {
    return !this.#answered && !this.#target.endpoint.secure
  }

  /** Called with every response. */
  onAnswer(): void {
    this.#answered = true
  }

  /** The agent for calls through Node's own client. */
  get agent(): Agent {
    return (this.#agent ??= this.newAgent())
  }

  /** Returns an agent without connections; the call destroys it. */
  newAgent(): DialAgent {
    return new DialAgent(this.#target, this.#settings, this.#memory)
  }

  /** Starts `call` at once or when a connection is free; fails it when the queue is full. */
  admit(call: QueuedCall): void {
    const slot = this.#slots.acquire(OWNER)
    if (slot === undefined) {
      call.begin()
      return
    }
    this.#waiting.set(call, slot)
    // Runs after undici has finished with the response whose end released the slot.
    slot.acquired.then(
      () => {
        if (this.#waiting.delete(call)) call.begin()
        else this.release(null)
      },
      (error: unknown) => {
        if (this.#waiting.delete(call)) call.fail(error)
      },
    )
  }

  /** Returns a connection for a call through undici, an idle one if there is one. */
  takeConnection(): PooledConnection {
    return this.#idle.pop() ?? this.newConnection()
  }

  newConnection({ reusable } = { reusable: true }): PooledConnection {
    // Idle ones may have been passed over: no more of both than requests may be in flight, this one included.
    if (this.#idle.length + this.#slots.held > EGRESS_CONNECTIONS_MAX) this.#idle.shift()?.drop()
    const connection: PooledConnection = new PooledConnection(
      this.#target,
      this.#settings,
      this.#memory,
      { ...this.readerOptions, reusable },
      (unannounced) => this.#onClosed(connection, unannounced),
    )
    return connection
  }

  /** Removes a call that has not started. */
  leave(call: QueuedCall): void {
    const slot = this.#waiting.get(call)
    this.#waiting.delete(call)
    slot?.leave(LEFT)
  }

  /** Ends a call that has started, and takes back its connection if it used one. */
  release(connection: PooledConnection | null): void {
    if (connection !== null && !connection.dropped) {
      if (this.#closed || !connection.reusable) connection.drop()
      else {
        connection.releasedAt = this.history.now()
        this.#idle.push(connection)
      }
    }
    this.#slots.release(OWNER)
    if (this.#closed && this.#slots.held === 0) this.#agent?.destroy()
  }

  /** Closes idle connections now, and the others when they are released. */
  retire(): void {
    this.#closed = true
    for (const connection of this.#idle.splice(0)) connection.drop()
    if (this.#slots.held === 0) this.#agent?.destroy()
  }

  #onClosed(connection: PooledConnection, unannounced: boolean): void {
    const index = this.#idle.indexOf(connection)
    if (index !== -1) this.#idle.splice(index, 1)
    const { releasedAt } = connection
    if (releasedAt === null) return
    // Not only of an idle one: undici may have been about to use it, and then dials again for the request.
    const soon = this.history.now() - releasedAt < EGRESS_EARLY_CLOSE_MS
    if (unannounced && soon) this.history.noteClose()
    connection.releasedAt = null
  }
}

/** All calls of a pool are of one owner. */
const OWNER = ''
const LEFT = new Error('The call left the queue')
const QUEUE_FULL = 'Too many requests wait for a connection'
