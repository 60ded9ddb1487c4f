/**
 * Tracks pending callbacks of the code that Node does not list, or lists only while they keep the process alive: timers
 * and immediates, including unref'd ones, finalizers, and waits for shared memory.
 *
 * This is not a security boundary: the code can undo all of it. Decision 0071.
 */
import { createHook, type HookCallbacks } from 'node:async_hooks'

/** A timer or an immediate of Node. */
interface Scheduled {
  readonly _destroyed: boolean
  readonly _onTimeout?: unknown
}

const { clearTimeout, setTimeout } = globalThis

export class PendingCallbacks {
  readonly #scheduled = new Set<Scheduled>()
  #sweepAt = SWEEP_MIN
  readonly #finalizers: (() => void)[] = []
  /** Timers of `AbortSignal.timeout()`. */
  readonly #timeouts = new Set<NodeJS.Timeout>()
  #waits = 0
  /** Ports, and handles of channels. */
  readonly #ports = new Set<object>()

  /** Must be called before anything schedules a callback. */
  watch(): void {
    const hook: HookCallbacks & { trackPromises: boolean } = {
      init: (_id, type, _trigger, resource) => {
        if (type === 'Timeout' || type === 'Immediate') this.#add(resource as Scheduled)
        if (type === 'MESSAGEPORT') this.#ports.add(resource)
      },
      // Tracking promises would slow down every `await`.
      trackPromises: false,
    }
    createHook(hook).enable()
    this.#deferFinalizers()
    this.#endTimeouts()
    this.#countWaits()
    this.#countLocks()
  }

  /** Whether the code has a callback pending, other than those of Node's own `fetch`. */
  get some(): boolean {
    this.#sweep()
    for (const it of this.#scheduled) if (!isTickOfFetch(it._onTimeout)) return true
    return this.#waits > 0 || this.#hasListeningPort()
  }

  /** Whether an immediate is pending. */
  get immediates(): boolean {
    this.#sweep()
    for (const it of this.#scheduled) if (it._onTimeout === undefined) return true
    return false
  }

  /** Cancels the timeouts of signals, and runs the deferred finalizers, whose errors it throws. */
  endRun(): void {
    for (const it of this.#timeouts) clearTimeout(it)
    this.#timeouts.clear()
    while (this.#finalizers.length > 0) this.#finalizers.pop()!()
  }

  #add(it: Scheduled): void {
    this.#scheduled.add(it)
    if (this.#scheduled.size >= this.#sweepAt) this.#sweep()
  }

  #sweep(): void {
    for (const it of this.#scheduled) if (it._destroyed) this.#scheduled.delete(it)
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * this.#scheduled.size)
  }

  /** Node lists a port only while that keeps the process alive. */
  #hasListeningPort(): boolean {
    for (const it of this.#ports) {
      if (!isOpenPort(it)) this.#ports.delete(it)
      else if (EVENTS_OF_PORTS.some((event) => apply(listenerCount, it, [event]) > 0)) return true
    }
    return false
  }

  /** A finalizer runs at some garbage collection, which may be in a later run than the one that registered it. */
  #deferFinalizers(): void {
    const finalizers = this.#finalizers
    const Original = globalThis.FinalizationRegistry
    class FinalizationRegistry<T> extends Original<T> {
      constructor(callback: (held: T) => void) {
        const deferred = (held: T): void => void finalizers.push(() => callback(held))
        super(typeof callback === 'function' ? deferred : callback)
      }
    }
    redefine(globalThis, { FinalizationRegistry })
  }

  /** A signal for a request outlives the request, and must not fire in a later run. */
  #endTimeouts(): void {
    const original = AbortSignal.timeout.bind(AbortSignal)
    const timeout = (delay: number): AbortSignal => {
      if (!Number.isInteger(delay) || delay < 0) return original(delay)
      const controller = new AbortController()
      const abort = (): void => {
        this.#timeouts.delete(timer)
        controller.abort(new DOMException(TIMED_OUT, 'TimeoutError'))
      }
      const timer = setTimeout(abort, delay).unref()
      this.#timeouts.add(timer)
      return controller.signal
    }
    redefine(AbortSignal, { timeout })
  }

  #countWaits(): void {
    const original = Atomics.waitAsync.bind(Atomics) as (...args: unknown[]) => Wait
    const waitAsync = (...args: unknown[]): Wait => {
      const wait = original(...args)
      if (wait.async) {
        this.#waits++
        void wait.value.then(() => this.#waits--)
      }
      return wait
    }
    redefine(Atomics, { waitAsync })
  }

  /** A lock that a run holds, or waits for, would keep it from later ones. */
  #countLocks(): void {
    const { locks } = navigator as unknown as { locks: Locks }
    const request: Locks['request'] = Reflect.get(locks, 'request')
    const counted = (...args: unknown[]): Promise<unknown> => {
      const done = apply(request, locks, args)
      const end = (): void => void this.#waits--
      this.#waits++
      void done.then(end, end)
      return done
    }
    redefine(getPrototypeOf(locks)!, { request: counted })
  }
}

interface Locks {
  request(...args: unknown[]): Promise<unknown>
}

type Wait = { async: true; value: Promise<string> } | { async: false; value: string }

const SWEEP_MIN = 1000
const TIMED_OUT = 'The operation was aborted due to timeout'

/** Replaces members, and keeps them enumerable or not. */
export function redefine(object: object, members: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(members)) {
    const { enumerable = false } = Object.getOwnPropertyDescriptor(object, name) ?? {}
    Object.defineProperty(object, name, { value, writable: true, enumerable, configurable: true })
  }
}

/**
 * Whether this is the clock of `fetch`, which ticks once or twice more after its last connection was closed, without calling
 * any code of a reactor. It belongs to undici, in Node or from its package, and only its source identifies it.
 */
function isTickOfFetch(callback: unknown): boolean {
  if (typeof callback !== 'function' || callback.name !== 'onTick') return false
  return apply(toText, callback, []).includes('fastNow += TICK_MS')
}

/** Whether the port, or the handle of a channel, is open. Only a reference to it shows that. */
function isOpenPort(it: object): boolean {
  if (apply(hasRef, it, [])) return true
  apply(ref, it, [])
  const isOpen: boolean = apply(hasRef, it, [])
  apply(unref, it, [])
  return isOpen
}

const EVENTS_OF_PORTS = ['message', 'messageerror', 'close'] as const

const { apply, getPrototypeOf } = Reflect
const memberOfPorts = (name: string): (() => never) => Reflect.get(MessagePort.prototype, name)
const [hasRef, ref, unref] = [memberOfPorts('hasRef'), memberOfPorts('ref'), memberOfPorts('unref')]
const listenerCount: (event: string) => number = memberOfPorts('listenerCount')
const toText: () => string = Reflect.get(Function.prototype, 'toString')
