import { createRequire, isBuiltin, registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { compileFunction, constants } from 'node:vm'
import {
  COMMON_FILE,
  HOME,
  MODULE_PREFIX,
  MODULE_URL,
  positionOf,
  positionOfSyntax,
  type StackPosition,
} from './code-position.ts'
import type { GuestSetUp } from './messages.ts'

/** Names under which existing reactor code requires the package of reactor errors. */
const ERROR_PACKAGES = [
  '@basis-theory/basis-theory-reactor-formulas-sdk-js',
  '@basis-theory/basistheory-reactor-formulas-sdk-js',
]

/** The code failed before it exported a function; the message says what to change. */
export class NoFunction extends Error {
  readonly position: StackPosition | null

  constructor(message: string, position: StackPosition | null = null) {
    super(message)
    this.position = position
  }
}

/** Returns the reason why there is no function, for anything thrown before the code exported one. */
export function noFunctionFor(thrown: unknown): NoFunction {
  if (thrown instanceof NoFunction) return thrown
  const position = positionOf(thrown)
  if (isNotDefined(thrown, 'await')) return new NoFunction(AWAIT, position)
  return new NoFunction(`The code threw before it exported a function: ${saidBy(thrown)}`, position)
}

/** The source text served at MODULE_URL. */
let moduleText = ''

/**
 * Loads `code` as CommonJS or, if it does not parse as that and exports something, as an ES module. Returns the
 * function it exports; throws NoFunction or what the code throws. `made` gets the `require` of CommonJS.
 */
export async function loadCode(
  code: string,
  hiding: Hiding,
  loading: Loading,
  made: (require: object) => void,
): Promise<(req: object) => unknown> {
  const exported = await evaluate(code, hiding, loading, made)
  if (typeof exported !== 'function') throw new NoFunction(NOTHING_EXPORTED)
  return exported as (req: object) => unknown
}

/** Replaces paths of the installation in a text; null to leave `require` as Node has it. */
type Hiding = ((text: string) => string) | null

/** Loads a module that the code requires, with `load`. */
type Loading = (name: string, load: () => unknown) => unknown

async function evaluate(
  code: string,
  hiding: Hiding,
  loading: Loading,
  made: (require: object) => void,
): Promise<unknown> {
  let run: CommonCode
  try {
    run = compileFunction(code, ['exports', 'require', 'module', '__filename', '__dirname'], {
      filename: COMMON_FILE,
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    }) as CommonCode
  } catch (error) {
    const fault = faultOfSyntax(error)
    // Without an export there is nothing to gain from running it as a module.
    if (!EXPORT.test(code)) throw fault
    return defaultOf(await importCode(code, fault))
  }
  const module = moduleOf(hiding, loading)
  const { exports, require } = module
  if (hiding !== null) made(require)
  run.call(exports, exports, require, module, COMMON_FILE, HOME.slice(0, -1))
  return defaultOf(module.exports)
}

type CommonCode = (
  this: unknown,
  exports: unknown,
  require: unknown,
  module: unknown,
  file: string,
  folder: string,
) => void

/** Runs the code as an ES module. `fault` is why it is not CommonJS. */
async function importCode(code: string, fault: NoFunction): Promise<unknown> {
  moduleText = MODULE_PREFIX + code.replace(/^#!/, '//')
  try {
    return await import(MODULE_URL)
  } catch (error) {
    const position = positionOf(error)
    if (
      isNotDefined(error, 'require|module|exports|__filename|__dirname') ||
      (error as NodeJS.ErrnoException | null)?.code === 'ERR_AMBIGUOUS_MODULE_SYNTAX'
    ) {
      throw new NoFunction(fault.message === AWAIT ? AWAIT : MIXTURE, position)
    }
    if (!(error instanceof SyntaxError) || position !== null) throw error
    const { message } = error
    // A fault in either syntax: only the first compiler told where.
    throw fault.message === AWAIT || fault.message === MIXTURE ? doesNotParse(message, null) : fault
  }
}

function faultOfSyntax(error: unknown): NoFunction {
  const message = (error as Error).message
  const position = positionOfSyntax(error)
  if (OF_AWAIT.test(message)) return new NoFunction(AWAIT, position)
  if (OF_MODULES.test(message)) return new NoFunction(MIXTURE, position)
  return doesNotParse(message, position)
}

function doesNotParse(message: string, position: StackPosition | null): NoFunction {
  return new NoFunction(`The code does not parse: ${message}`, position)
}

function isNotDefined(error: unknown, names: string): boolean {
  const found = new RegExp(`^(?:${names}) is not defined\\b`)
  return error instanceof ReferenceError && found.test(error.message)
}

function saidBy(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return String(thrown)
    return thrown.message || thrown.name
  } catch {
    return 'a value that is not a string'
  }
}

const EXPORT = /(?:^|[;}]|\*\/)[^\S\n]*export\b/m
const OF_AWAIT = /^await is only valid|^Unexpected reserved word/
const OF_MODULES =
  /^Cannot use (?:import statement|'import\.meta') outside a module|^Unexpected token 'export'/

const NOTHING_EXPORTED =
  'The code exports no function: assign one to `module.exports`, or use `export default`'
const AWAIT =
  '`await` is used outside an async function: move it into the exported function and make that async, or export the function with `export default` and replace `require` with `import`'
const MIXTURE =
  'The code mixes CommonJS and ES modules: use either `require` and `module.exports`, or `import` and `export default`; top-level `await` works only with the latter'

/** Returns `module.exports`, or the default export of a module, including one compiled to CommonJS. */
function defaultOf(exported: unknown): unknown {
  if (typeof exported === 'function' || typeof exported !== 'object' || exported === null) {
    return exported
  }
  return 'default' in exported ? defaultOf(exported.default) : exported
}

/** Returns what the code sees as `module`, of our own making: Node's knows where packages are installed. */
function moduleOf(hiding: Hiding, loading: Loading) {
  const require = createRequire(COMMON_FILE)
  return {
    exports: {} as unknown,
    require: hiding === null ? require : requireOf(require, hiding, loading),
    id: '.',
    path: HOME.slice(0, -1),
    filename: COMMON_FILE,
    loaded: false,
    children: [],
    paths: [],
  }
}

/** Returns a `require` that shows no path: modules resolve to their own names. */
function requireOf(require: NodeJS.Require, hide: (text: string) => string, loading: Loading) {
  const attempt = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (error) {
      throw withoutPaths(error, hide)
    }
  }
  const resolve = (name: string): string => {
    attempt(() => require.resolve(name))
    return name
  }
  const get = (name: string): unknown => loading(name, () => attempt(() => require(name)))
  return Object.assign(get, {
    resolve: Object.assign(resolve, { paths: () => [] }),
    cache: {},
    extensions: {},
    main: undefined,
  })
}

/** Hides the paths in an error of Node or of a package, in place. */
function withoutPaths(error: unknown, hide: (text: string) => string): unknown {
  if (!(error instanceof Error)) return error
  try {
    Reflect.deleteProperty(error, 'requireStack')
    const [message] = error.message.split('\nRequire stack:', 1)
    error.message = message!
    for (const name of Object.getOwnPropertyNames(error)) {
      const it: unknown = Reflect.get(error, name)
      if (typeof it === 'string') Reflect.set(error, name, hide(it))
    }
  } catch {
    // It is frozen, and stays as it is.
  }
  return error
}

/** Restricts later code to requiring and importing what `setUp` allows. */
export function holdImports(
  { builtIns, packages, notInstalled, checks }: GuestSetUp,
  hide: (text: string) => string,
  imported: (name: string, url: string) => void,
): void {
  const errors = new URL('./reactor-errors.ts', import.meta.url).href
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === MODULE_URL) return { url: MODULE_URL, format: 'module', shortCircuit: true }
      if (context.parentURL?.startsWith(`file://${HOME}`) !== true) return next(specifier, context)
      const name = specifier.replace(/^node:/, '')
      if (ERROR_PACKAGES.includes(name))
        return { url: errors, format: 'module', shortCircuit: true }
      if (builtIns.includes(name)) {
        imported(name, `node:${name}`)
        return next(`node:${name}`, context)
      }
      const home = Object.hasOwn(packages, packageOf(name)) ? packages[packageOf(name)] : undefined
      if (home !== undefined && !name.split('/').includes('..')) {
        const file = fileOf(home, name)
        if (!context.conditions.includes('import')) return next(file, context)
        const { href } = pathToFileURL(file)
        imported(name, href)
        return next(href, context)
      }
      if (!checks) return next(specifier, context)
      throw notFound(`Cannot find module '${specifier}': ${whyNot(specifier, notInstalled)}`)
    },
    load(url, context, next) {
      if (url === MODULE_URL) return { format: 'module', source: moduleText, shortCircuit: true }
      try {
        return next(url, context)
      } catch (error) {
        throw withoutPaths(error, hide)
      }
    },
  })
}

/** Returns why code may not have a module, and what the operator can do about it. */
function whyNot(specifier: string, notInstalled: GuestSetUp['notInstalled']): string {
  const wanted = packageOf(specifier)
  if (Object.hasOwn(notInstalled, wanted)) {
    return `it comes with ${notInstalled[wanted]}, which the operator has not installed beside the vault`
  }
  const known = !isBuiltin(specifier) && PACKAGE.test(specifier)
  const hint = known ? ', unless the operator adds it to SYMBOLON_REACTOR_PACKAGES' : ''
  return `reactors may not use it${hint}`
}

/** Looks like the name of a package, and not like a path. */
const PACKAGE = /^@?[a-z0-9]/i

/** Throws if the package has no such file, or does not export it. */
function fileOf(home: string, name: string): string {
  try {
    return createRequire(`${home}/reactor.js`).resolve(name)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const inside = packageOf(name) !== name
    throw notFound(
      `Cannot find module '${name}': the package ${packageOf(name)} ${inside ? 'does not export it' : 'cannot be loaded'}`,
      code,
    )
  }
}

function notFound(message: string, code = 'MODULE_NOT_FOUND'): Error {
  return Object.assign(new Error(message), { code })
}

/** `lodash` of `lodash/get`, `@scope/name` of `@scope/name/part`. */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}
