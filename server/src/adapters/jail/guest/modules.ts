import { createRequire, registerHooks, Module } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { GuestSetUp } from './messages.ts'

/** The folder that the code appears to be in; it does not exist. */
const HOME = '/reactor/'
const COMMON_FILE = `${HOME}reactor.js`
const MODULE_URL = `file://${HOME}reactor.mjs`

/** Names under which existing reactor code requires the package of reactor errors. */
const ERROR_PACKAGES = [
  '@basis-theory/basis-theory-reactor-formulas-sdk-js',
  '@basis-theory/basistheory-reactor-formulas-sdk-js',
]

/** The code does not parse, or exports no function. */
export class NoFunction extends Error {}

/** The source text served at MODULE_URL. */
let moduleText = ''

/**
 * Loads `code` as CommonJS or, if that fails, as an ES module, and returns the function it exports.
 *
 * Throws NoFunction; rethrows what the code throws while it loads.
 */
export async function loadCode(code: string): Promise<(req: object) => unknown> {
  moduleText = code
  const exported = await evaluate(code)
  if (typeof exported !== 'function') throw new NoFunction('The code exports no function')
  return exported as (req: object) => unknown
}

async function evaluate(code: string): Promise<unknown> {
  const module = new Module(COMMON_FILE) as Compilable
  module.filename = COMMON_FILE
  module.paths = []
  try {
    module._compile(code, COMMON_FILE, 'commonjs')
    return defaultOf(module.exports)
  } catch (error) {
    if (!isFaultOfSyntax(error)) throw error
    if (!MODULE_SYNTAX.test(code)) throw new NoFunction(`The code does not parse: ${error.message}`)
  }
  try {
    return defaultOf(await import(MODULE_URL))
  } catch (error) {
    if (!isFaultOfSyntax(error)) throw error
    throw new NoFunction(`The code does not parse: ${error.message}`)
  }
}

/** A module with Node's internal method that compiles CommonJS. */
interface Compilable extends Module {
  _compile(code: string, filename: string, format: 'commonjs'): unknown
}

const MODULE_SYNTAX = /^\s*(?:import|export)\b|\bawait\b|\bimport\.meta\b/m

/** Whether the parser threw the error; running code may throw a SyntaxError too, but then is in the stack. */
function isFaultOfSyntax(error: unknown): error is SyntaxError {
  return error instanceof SyntaxError && !/\n\s+at .*\/reactor\/reactor\./.test(error.stack ?? '')
}

/** Returns `module.exports`, or the default export of a module, including one compiled to CommonJS. */
function defaultOf(exported: unknown): unknown {
  if (typeof exported === 'function' || typeof exported !== 'object' || exported === null) {
    return exported
  }
  return 'default' in exported ? defaultOf(exported.default) : exported
}

/** Restricts later code to requiring and importing what `setUp` allows. */
export function holdImports({ builtIns, packages, checks }: GuestSetUp): void {
  const errors = new URL('./reactor-errors.ts', import.meta.url).href
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === MODULE_URL) return { url: MODULE_URL, format: 'module', shortCircuit: true }
      if (context.parentURL?.startsWith(`file://${HOME}`) !== true) return next(specifier, context)
      const name = specifier.replace(/^node:/, '')
      if (ERROR_PACKAGES.includes(name))
        return { url: errors, format: 'module', shortCircuit: true }
      if (builtIns.includes(name)) return next(`node:${name}`, context)
      const home = packages[packageOf(name)]
      if (home !== undefined) {
        const file = createRequire(`${home}/reactor.js`).resolve(name)
        return next(
          context.conditions.includes('import') ? pathToFileURL(file).href : file,
          context,
        )
      }
      if (!checks) return next(specifier, context)
      throw Object.assign(new Error(`Cannot find module '${specifier}': reactors may not use it`), {
        code: 'MODULE_NOT_FOUND',
      })
    },
    load(url, context, next) {
      if (url !== MODULE_URL) return next(url, context)
      return { format: 'module', source: moduleText, shortCircuit: true }
    },
  })
}

/** `lodash` of `lodash/get`, `@scope/name` of `@scope/name/part`. */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}
