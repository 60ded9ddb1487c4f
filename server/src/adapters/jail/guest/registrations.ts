/** Counts callbacks that code registers with built-in modules that do not list them. */
import { createHook } from 'node:async_hooks'
import diagnostics from 'node:diagnostics_channel'
import { PerformanceObserver } from 'node:perf_hooks'
import tls from 'node:tls'
import { redefine } from './pending-callbacks.ts'

/** Calls `probe` for each kind, with its name and a function that counts. */
export function countRegistrations(probe: (name: string, count: () => number) => void): void {
  const hooks = Object.getPrototypeOf(createHook({})) as object
  probe('async_hooks', opened(hooks, 'enable', 'disable'))
  probe('PerformanceObserver', opened(PerformanceObserver.prototype, 'observe', 'disconnect'))
  probe('diagnostics_channel', subscribed())
  probe('tls.setDefaultCACertificates()', called(tls, 'setDefaultCACertificates'))
}

type AnyMethod = (this: unknown, ...args: unknown[]) => unknown

/** Counts the objects for which `begin` was called, but not `end`. */
function opened(prototype: object, begin: string, end: string): () => number {
  const open = new Set<unknown>()
  before(prototype, begin, (it) => open.add(it))
  before(prototype, end, (it) => open.delete(it))
  return () => open.size
}

function called(object: object, name: string): () => number {
  let calls = 0
  before(object, name, () => calls++)
  return () => calls
}

interface DiagnosticsChannel {
  readonly _subscribers?: readonly unknown[]
  readonly _stores?: ReadonlyMap<unknown, unknown>
}

/** Counts subscribers of the channels that ever had one. */
function subscribed(): () => number {
  const channels = new Set<DiagnosticsChannel>()
  for (const it of ['subscribe', 'bindStore']) {
    before(diagnostics.Channel.prototype, it, (channel) =>
      channels.add(channel as DiagnosticsChannel),
    )
  }
  return () => {
    let count = 0
    for (const it of channels) count += (it._subscribers?.length ?? 0) + (it._stores?.size ?? 0)
    return count
  }
}

/** Calls `note` with the object before each call of its method. */
function before(object: object, name: string, note: (it: unknown) => void): void {
  const method = Reflect.get(object, name) as AnyMethod
  redefine(object, {
    [name](this: unknown, ...args: unknown[]) {
      note(this)
      return method.apply(this, args)
    },
  })
}
