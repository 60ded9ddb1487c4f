/**
 * Replaces functions for which Node reads files, or makes system calls, that a guest does not have, so that code that only
 * asks for figures runs unchanged. Where a level permits the real answer, that is returned.
 */
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { redefine } from './pending-callbacks.ts'

/** With `names`, the lookups of `dns` fail with an error that says why. */
export function replaceProcessCalls({ names }: { readonly names: boolean }): void {
  replaceMemoryUsage()
  const umask = process.umask.bind(process)
  redefine(process, {
    umask: (...args: [number?]): number => {
      const mask = Reflect.apply(umask, null, args)
      return mask > 0o777 ? UMASK : mask
    },
  })
  const { cpus, getPriority, networkInterfaces, userInfo } = os
  redefine(os, {
    cpus: () =>
      cpus().length > 0 ? cpus() : Array.from({ length: os.availableParallelism() }, cpu),
    getPriority: () => orElse(getPriority, () => os.constants.priority.PRIORITY_LOW),
    networkInterfaces: () => orElse(networkInterfaces, () => ({})),
    userInfo: (...args: Parameters<typeof userInfo>) => orElse(() => userInfo(...args), user),
  })
  if (names) {
    refuseNames(dns, (error, callback) => process.nextTick(callback, error))
    refuseNames(dns.promises, (error) => Promise.reject(error))
  }
  syncBuiltinESMExports()
}

/** Node reads `rss` from /proc; the peak is known without it. */
function replaceMemoryUsage(): void {
  const original = process.memoryUsage
  const rssOfNode = original.rss.bind(original)
  const rss = (): number => orElse(rssOfNode, () => process.resourceUsage().maxRSS * 1024)
  const estimated = (): NodeJS.MemoryUsage => {
    const it = getHeapStatistics()
    return {
      rss: rss(),
      heapTotal: it.total_heap_size,
      heapUsed: it.used_heap_size,
      external: it.external_memory,
      arrayBuffers: it.external_memory,
    }
  }
  const memoryUsage = Object.assign((): NodeJS.MemoryUsage => orElse(original, estimated), { rss })
  redefine(process, { memoryUsage })
}

/** The usual default: a guest creates no files. */
const UMASK = 0o022

function cpu(): os.CpuInfo {
  return { model: 'unknown', speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }
}

function user(): os.UserInfo<string> {
  const [uid, gid] = [process.getuid?.() ?? -1, process.getgid?.() ?? -1]
  return { uid, gid, username: 'reactor', homedir: '/', shell: null }
}

/** Replaces the functions that look up names: a guest has no resolver, and connections need no addresses. */
function refuseNames(
  module: object,
  refuse: (error: Error, callback: (error: Error) => void) => unknown,
): void {
  for (const [name, it] of Object.entries(module)) {
    if (typeof it !== 'function' || !LOOKUPS.test(name)) continue
    const refused = (host: unknown, ...args: unknown[]): unknown => {
      const callback = args.findLast((arg) => typeof arg === 'function')
      const error = Object.assign(new Error(`${NO_NAMES}: ${String(host)}`), { code: 'EREFUSED' })
      return refuse(error, callback as (error: Error) => void)
    }
    redefine(module, { [name]: refused })
  }
}

const LOOKUPS = /^(?:lookup|resolve|reverse)/
const NO_NAMES = 'Reactors cannot look up addresses: connect to the host by its name'

function orElse<Result>(first: () => Result, second: () => Result): Result {
  try {
    return first()
  } catch {
    return second()
  }
}
