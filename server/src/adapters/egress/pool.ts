import type { Agent } from 'node:http'
import { EGRESS_CONNECTIONS_MAX, EGRESS_WAITING_MAX } from '../../base/limits.ts'
import { EgressFailure } from '../../ports/egress.ts'
import { DialAgent } from './dial-agent.ts'
import type { DialSettings, Target, TlsMemory } from './dial.ts'
import { PooledConnection, type ReaderOptions } from './pooled-connection.ts'
import { authorityOf } from './egress-endpoint.ts'

/** A call that waits for a connection. */
export interface QueuedCall {
  /** There is a connection for it; when it is done, it says so by release(). */
  begin(): void
  fail(error: unknown): void
}

/**
 * The connections of one owner to one destination: used again one after the other, never by somebody else.
 *
 * A request has a connection to itself. Those that find none free wait in a queue, and leave it when their time is
 * up. The connection used last is taken first, so that connections nobody needs fall idle and are closed.
 */
export class Pool {
  readonly #target: Target
  readonly #settings: DialSettings
  readonly readerOptions: ReaderOptions
  readonly #memory: TlsMemory = { session: undefined }
  readonly #idle: PooledConnection[] = []
  readonly #waiting = new Set<QueuedCall>()
  #agent: DialAgent | null = null
  #active = 0
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

  /** For a call that goes by Node's own client. */
  get agent(): Agent {
    return (this.#agent ??= new DialAgent(this.#target, this.#settings, this.#memory))
  }

  /** Begins `call` at once, or when a connection is free; fails it when too many wait already. */
  admit(call: QueuedCall): void {
    if (this.#active < EGRESS_CONNECTIONS_MAX) this.#begin(call)
    else if (this.#waiting.size < EGRESS_WAITING_MAX) this.#waiting.add(call)
    else {
      const cause = new Error('Too many requests wait for a connection')
      call.fail(new EgressFailure('unreachable', { cause }))
    }
  }

  /** For a call that goes by undici. */
  takeConnection(): PooledConnection {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const connection: PooledConnection = new PooledConnection(
      this.#target,
      this.#settings,
      this.#memory,
      this.readerOptions,
      () => {
        const index = this.#idle.indexOf(connection)
        if (index !== -1) this.#idle.splice(index, 1)
      },
    )
    return connection
  }

  /** For a call that has not begun. */
  leave(call: QueuedCall): void {
    this.#waiting.delete(call)
  }

  /** For one that has, with its connection if it took one. */
  release(connection: PooledConnection | null): void {
    this.#active -= 1
    if (connection !== null && !connection.dropped) {
      if (this.#closed) connection.drop()
      else this.#idle.push(connection)
    }
    // Later, when undici is done with the answer that has just ended.
    if (this.#waiting.size > 0) queueMicrotask(this.#beginNext)
    else if (this.#closed && this.#active === 0) this.#agent?.destroy()
  }

  /** Closes what is idle now, and the rest as it is released. */
  retire(): void {
    this.#closed = true
    for (const connection of this.#idle.splice(0)) connection.drop()
    if (this.#active === 0) this.#agent?.destroy()
  }

  readonly #beginNext = (): void => {
    const [call] = this.#waiting
    if (call === undefined || this.#active >= EGRESS_CONNECTIONS_MAX) return
    this.#waiting.delete(call)
    this.#begin(call)
  }

  #begin(call: QueuedCall): void {
    this.#active += 1
    call.begin()
  }
}
