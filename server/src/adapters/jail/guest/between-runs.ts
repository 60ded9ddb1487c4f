import type { Connections } from './connections.ts'
import type { PendingCallbacks } from './pending-callbacks.ts'
import type { WatchedGlobals } from './watched-globals.ts'

const { setImmediate } = globalThis
const getActiveResources = process.getActiveResourcesInfo.bind(process)

/** The pipe to the host, as far as it keeps the process alive. */
interface HostPipe {
  ref(): unknown
  unref(): unknown
}

/**
 * Finds out whether a run left something that could affect the next one. Decision 0071.
 *
 * Waits for everything that ends by itself: closed connections, promises, immediates, thread pool work. Anything else is a
 * leftover: its callbacks could throw, or call `process.exit()`, in a later run.
 */
export class BetweenRuns {
  readonly #channel: HostPipe
  readonly #connections: Connections
  readonly #pending: PendingCallbacks
  readonly #globals: WatchedGlobals
  /** Types of the handles that Node itself keeps open. */
  readonly #ownHandles = handles()
  #idle: (() => void) | null = null

  constructor(
    channel: HostPipe,
    connections: Connections,
    pending: PendingCallbacks,
    globals: WatchedGlobals,
  ) {
    this.#channel = channel
    this.#connections = connections
    this.#pending = pending
    this.#globals = globals
    process.on('beforeExit', () => this.#idle?.())
  }

  /** Resolves with a description of the last run's leftover, or null if there is none. Rejects with an error that a leftover throws. */
  async leftover(): Promise<string | null> {
    for (let round = 0; round === 0 || this.#connections.someOpen; round++) {
      if (round === ROUNDS_MAX) return 'a connection that is opened again and again'
      // The host closes them once it has the result.
      await this.#connections.allClosed()
      this.#pending.endRun()
      if (!(await this.#turn())) return 'a loop of immediates'
      const found = this.#found()
      if (found !== null) return found
      await this.#noWork()
    }
    await this.#globals.addImports()
    return this.#found() ?? this.#globals.change()
  }

  /** Runs pending immediates. Returns false if they never end. */
  async #turn(): Promise<boolean> {
    for (let turn = 0; turn < TURNS_MIN || this.#pending.immediates; turn++) {
      if (turn === TURNS_MAX) return false
      await nextTurn()
    }
    return true
  }

  #found(): string | null {
    if (this.#pending.some) return 'a timer or a callback'
    const own = [...this.#ownHandles]
    for (const it of handles()) {
      const known = own.indexOf(it)
      if (known < 0) return `an open ${it}`
      own.splice(known, 1)
    }
    return null
  }

  /**
   * Resolves when only the pipe is left to wait for, not even thread pool work: Node then emits `beforeExit`.
   */
  async #noWork(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#idle = resolve
      this.#channel.unref()
    })
    this.#idle = null
    this.#channel.ref()
  }
}

/** A client may retry a request whose connection was closed. */
const ROUNDS_MAX = 5

/** The first turn runs `close` listeners, the second the immediates that they have scheduled. */
const TURNS_MIN = 2
/** Immediates that schedule immediates may be the end of a stream, or a loop. */
const TURNS_MAX = 20

/** Requests, which, unlike handles, end by themselves. */
const AWAITED = /Req|^WriteWrap$|^ShutdownWrap$/

function handles(): string[] {
  return getActiveResources().filter((it) => !AWAITED.test(it))
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
