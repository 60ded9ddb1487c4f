/**
 * Gives the code neutral values where Node shows the paths of its own files, so that no result, error or output holds
 * where the vault is installed.
 *
 * This is no security boundary: code that searches the memory of its process may find the paths. The walls keep it
 * from the files all the same.
 */
import diagnostics from 'node:diagnostics_channel'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import util from 'node:util'
import { COMMON_FILE } from './code-position.ts'

const NODE = '/reactor/node'

/** Calls `given` for each module that the code gets. Returns a function that reads the code's own `Error.prepareStackTrace`. */
export function hideInstallation(
  hide: (text: string) => string,
  builtIns: readonly string[],
  given: (name: string, module: unknown) => void,
): () => unknown {
  const neutral = {
    title: 'reactor',
    argv: [NODE, COMMON_FILE],
    execArgv: [],
    execPath: NODE,
    mainModule: undefined,
    report: undefined,
    setUncaughtExceptionCaptureCallback: refuseCapture,
    binding: refuse,
    _linkedBinding: refuse,
  }
  for (const [name, value] of Object.entries(neutral)) {
    const property = { value, writable: true, enumerable: true, configurable: true }
    Object.defineProperty(process, name, property)
  }
  const builtIn = process.getBuiltinModule.bind(process) as (name: string) => unknown
  const allowed = (name: unknown): unknown => {
    const short = typeof name === 'string' ? name.replace(/^node:/, '') : ''
    if (!builtIns.includes(short)) return undefined
    const module = builtIn(short)
    given(short, module)
    return module
  }
  Object.assign(process, { getBuiltinModule: allowed })
  const { userInfo } = os
  Object.assign(os, {
    homedir: () => '/',
    tmpdir: () => '/tmp',
    userInfo: (...args: Parameters<typeof userInfo>) => ({ ...userInfo(...args), homedir: '/' }),
  })
  const customFormat = hideInStacks(hide)
  silenceModuleChannels()
  syncBuiltinESMExports()
  return customFormat
}

function refuse(): never {
  throw new Error('Reactors cannot use the bindings of Node')
}

/** Node's own function needs `process.report`, which is hidden. */
function refuseCapture(): never {
  throw new Error("Reactors cannot capture uncaught errors: listen to 'uncaughtException'")
}

/** Hides paths in every `error.stack`, and in the call sites that code may ask for. */
function hideInStacks(hide: (text: string) => string): () => unknown {
  let custom: unknown
  const format = (error: Error, sites: NodeJS.CallSite[]): unknown => {
    if (typeof custom === 'function') {
      return custom.call(
        Error,
        error,
        sites.map((it) => withoutPaths(it, hide)),
      )
    }
    return hide([headOf(error), ...sites.map(String)].join('\n    at '))
  }
  Object.defineProperty(Error, 'prepareStackTrace', {
    get: () => format,
    set: (it: unknown) => {
      custom = it === format ? undefined : it
    },
    configurable: true,
  })
  const { getCallSites } = util
  const hidden = (...args: Parameters<typeof getCallSites>) =>
    getCallSites(...args).map((it) => ({ ...it, scriptName: hide(it.scriptName) }))
  Object.assign(util, { getCallSites: hidden })
  return () => custom
}

function headOf(error: Error): string {
  try {
    return Error.prototype.toString.call(error)
  } catch {
    return '<error>'
  }
}

function withoutPaths(site: NodeJS.CallSite, hide: (text: string) => string): NodeJS.CallSite {
  return new Proxy(site, {
    get: (_, name) => {
      const it: unknown = Reflect.get(site, name)
      if (typeof it !== 'function') return it
      return (...args: unknown[]): unknown => {
        const value: unknown = it.apply(site, args)
        return typeof value === 'string' ? hide(value) : value
      }
    },
  })
}

/** Node reports each module that is loaded, with its path, to every subscriber. */
function silenceModuleChannels(): void {
  for (const name of ['module.require', 'module.import']) {
    for (const event of ['start', 'end', 'asyncStart', 'asyncEnd', 'error']) {
      Object.assign(diagnostics.channel(`tracing:${name}:${event}`), {
        publish: () => {},
        runStores: (
          _: unknown,
          run: (...args: unknown[]) => unknown,
          self: unknown,
          ...args: unknown[]
        ) => run.apply(self, args),
      })
    }
  }
}
