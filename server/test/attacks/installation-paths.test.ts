/** Code that tries to learn, or to have shown, where the vault is installed: in results, errors and output. */
import assert from 'node:assert/strict'
import { homedir } from 'node:os'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { JailRunner } from '../../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../src/adapters/jail/no-way.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import {
  REACTOR_LEVELS,
  type ReactorOutcome,
  type SandboxRun,
} from '../../src/ports/reactor-runner.ts'
import { noBubblewrap } from '../kit/bubblewrap.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000

const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
const HIDDEN = [
  ROOT,
  pathToFileURL(ROOT).href,
  encodeURIComponent(ROOT),
  process.execPath,
  homedir(),
  'symbolon-guest-',
].filter((it) => it !== '/')

/** An attempt to reveal a path: the value of an expression, or whole modules. */
interface PathAttempt {
  readonly expression?: string
  /** Statements before the expression. They change their process, so that no other attempt may use it. */
  readonly setUp?: string
  readonly codes?: readonly string[]
}

function uses(expression: string, setUp = ''): PathAttempt {
  return { expression, setUp }
}

const SEPARATOR = '\n----\n'

/**
 * Code that uses expressions, which may throw. Its function returns the value of the one numbered `args.n`, or what that
 * throws, and writes it to the console; or it throws it, as a message and as `errors`.
 */
function inRuns(expressions: readonly string[], setUp = ''): string {
  return `${setUp}
    const expressions = ${functionsOf(expressions)}
    module.exports = async ({ args: { n, throws } }) => {
      if (throws) {
        const it = String(await expressions[n]())
        throw Object.assign(new Error('It is ' + it), { errors: { [it]: [it] }, status: 400 })
      }
      let it
      try { it = await expressions[n]() }
      catch (error) { it = [error.message, error.stack, error.path, error.requireStack, { ...error }] }
      console.log(typeof it === 'string' ? it.replaceAll('\\n', ' ') : it)
      return { raw: it }
    }`
}

/** Code that throws the values of the expressions while it is loaded, or the messages of what they throw. */
function whileLoaded(expressions: readonly string[], setUp = ''): string {
  return `${setUp}
    module.exports = (async () => {
      const all = []
      for (const it of ${functionsOf(expressions)}) {
        all.push(await it().then(String).catch((error) => error.message))
      }
      throw new Error(all.join(${JSON.stringify(SEPARATOR)}))
    })()`
}

function functionsOf(expressions: readonly string[]): string {
  return `[${expressions.map((it) => `async () => (${it})`).join(',\n')}]`
}

const ATTEMPTS: Readonly<Record<string, PathAttempt>> = {
  'an inner file that a package does not export': uses(`require('uuid/v4')`),
  'the same, imported': uses(`await import('uuid/v4')`),
  'a package file that is no JavaScript': uses(`await import('lodash/package.json')`),
  'a path out of a package': uses(`require('lodash/../../../../package.json')`),
  'a path out of a package, imported': uses(`await import('lodash/../../package.json')`),
  'an absolute path': uses(`require('/etc/passwd')`),
  'a name that every object has': uses(`require('constructor')`),
  'a prototype as a name': uses(`require('__proto__')`),
  'a package that there is not': uses(`require('no-such-package')`),
  'a name that is no text': uses(`require({ a: 1 })`),
  'an import that a package does not have': {
    codes: [
      `import { nothing } from 'axios'; export default () => nothing`,
      `import v4 from 'uuid/v4'; export default () => v4`,
      `import data from 'lodash/package.json'; export default () => data`,
    ],
  },
  'require.resolve': uses(`require.resolve('lodash')`),
  'require.resolve of what there is not': uses(`require.resolve('no-such-package')`),
  'require.resolve.paths': uses(`require.resolve.paths('lodash')`),
  'require.cache': uses(`Object.keys(require.cache)`, `require('axios')`),
  'require.main': uses(`require.main?.filename`),
  'import.meta': {
    codes: [
      `export default () => ({ raw: [import.meta.url, import.meta.filename, import.meta.resolve('lodash')] })`,
      `export default () => ({ raw: [import.meta.resolve('axios'), import.meta.resolve('./a')] })`,
    ],
  },
  'module.children': uses(`module.children.map((it) => it.filename)`, `require('axios')`),
  'module.parent': uses(`[module.parent?.filename, module.paths, module.id, module.path]`),
  'the class of module': uses(
    `[module.constructor._pathCache, Object.keys(module.constructor._cache ?? {})]`,
  ),
  __filename: uses(`[__filename, __dirname]`),
  'process.title': uses(`process.title`),
  'process.argv': uses(`[process.argv, process.argv0, process.execArgv]`),
  'process.execPath': uses(`process.execPath`),
  'process.execPath, imported': {
    codes: [
      `import { execPath, argv, title } from 'process'; export default () => ({ raw: [execPath, argv, title] })`,
    ],
  },
  'process.cwd()': uses(`process.cwd()`),
  'path.resolve()': uses(`require('path').resolve('x')`),
  'process.env': uses(`JSON.stringify(process.env)`),
  'process.report': uses(`process.report?.getReport()`),
  'process.mainModule': uses(`process.mainModule?.filename`),
  process: uses(`require('util').inspect(process, { depth: 4, showHidden: true })`),
  'process.getBuiltinModule()': uses(
    `Object.keys(process.getBuiltinModule('module')?._pathCache ?? {})`,
    `require('axios')`,
  ),
  'process.binding()': uses(`process.binding('fs').readlink('/proc/self/exe')`),
  'os.homedir()': uses(`[require('os').homedir(), require('os').tmpdir()]`),
  'os.userInfo()': uses(`require('os').userInfo().homedir`),
  'error.stack': uses(`new Error('x').stack`),
  'the stack of an error of a package': uses(
    `(() => { try { require('xmlbuilder2').create('<<') } catch (error) { return error.stack } })()`,
  ),
  'the stack of a callback of a package': uses(
    `require('lodash').map([1], () => new Error('x').stack)`,
  ),
  'Error.captureStackTrace()': uses(
    `(() => { const it = {}; Error.captureStackTrace(it); return it.stack })()`,
  ),
  'Error.prepareStackTrace': uses(
    `require('lodash').map([1], () => new Error('x').stack)[0].map((it) => [
       it.getFileName(), it.getScriptNameOrSourceURL(), it.getEvalOrigin(), String(it)])`,
    `Error.prepareStackTrace = (_, sites) => sites`,
  ),
  'util.getCallSites()': uses(
    `require('lodash').map([1], () => require('util').getCallSites().map((it) => JSON.stringify(it)))`,
  ),
  'a failed assertion': uses(`require('assert')(0)`),
  'the diagnostics of require': uses(
    `JSON.stringify(seen)`,
    `const seen = []; const channels = require('diagnostics_channel')
     for (const name of ['start', 'end', 'error'])
       channels.subscribe('tracing:module.require:' + name, (it) => seen.push(it.id, it.parentFilename))
     require('axios')`,
  ),
  'what a package throws at the top': { codes: [`require('uuid/v4'); module.exports = () => 1`] },
  'a package in an ES module': {
    codes: [
      `import { createRequire } from 'module'; export default () => createRequire('/reactor/x.js').resolve('lodash')`,
    ],
  },
}

/** Attempts at what depends on how the level starts the process. */
const OF_THE_PROCESS =
  /^(?:process|os\.|path\.|__filename|import\.meta|error\.stack|require\.main|module\.parent)/

/** Walks all that code can reach, and returns where it finds a path that holds one of the texts, which are reversed. */
const WALK = `module.exports = ({ args }) => {
  const hidden = args.map((it) => it.split('').reverse().join(''))
  const found = [], seen = new Set(), queue = [
    ['global', globalThis], ['require', require], ['module', module], ['exports', exports], ['error', new Error('x')],
    ...[${[
      'process',
      'os',
      'path',
      'util',
      'net',
      'tls',
      'http',
      'https',
      'url',
      'events',
      'stream',
      'async_hooks',
      'perf_hooks',
      'diagnostics_channel',
      'console',
      'assert',
      'dns',
      'timers',
      'zlib',
      'buffer',
      'crypto',
      'lodash',
      'axios',
      'uuid',
      'node-forge',
      'node-fetch',
      'crypto-js',
      'xmlbuilder2',
      'json-stable-stringify',
    ]
      .map((it) => `'${it}'`)
      .join()}].map((it) => [it, require(it)])]
  for (const [at, it] of queue) {
    if (at === 'global.process.config' || seen.size > 300000) continue
    for (const key of Reflect.ownKeys(it)) {
      let value
      try { value = Reflect.get(it, key) } catch (error) { value = error }
      const here = at + '.' + String(key)
      for (const text of [key, value]) {
        if (typeof text === 'string' && hidden.some((it) => text.includes(it))) found.push(here)
      }
      if ((typeof value === 'object' || typeof value === 'function') && value !== null && !seen.has(value) && value !== args) {
        seen.add(value)
        queue.push([here, value])
      }
    }
    const above = Object.getPrototypeOf(it)
    if (above !== null && !seen.has(above)) { seen.add(above); queue.push([at + '.__proto__', above]) }
    let values = []
    try { if (it instanceof Map || it instanceof Set) values = [...it].flat() } catch {}
    for (const value of values) {
      if (typeof value === 'string' && hidden.some((it) => value.includes(it))) found.push(at + '[]')
      if (typeof value === 'object' && value !== null && !seen.has(value)) { seen.add(value); queue.push([at + '[]', value]) }
    }
  }
  return found.slice(0, 20)
}`

/** Every code is another reactor. */
let runs = 0

for (const level of REACTOR_LEVELS) {
  const skip = level === 'hardened' && noBubblewrap()
  describe(`at the level ${level}, no path of the installation comes out by`, { skip }, () => {
    const heard: string[] = []
    let runner: JailRunner
    before(async () => {
      const settings = { authorities: [], waysOut: NO_WAY, wallsTestMsMax: TIMEOUT_MS }
      const output = (_: SandboxRun, text: string) => void heard.push(text)
      runner = await JailRunner.open({ ...settings, level, packages: [], output })
    })
    after(() => runner.close())

    // What the guest's own code hides, and what is made of an error, is the same at every level.
    const whole = level === 'jail'
    const tried = Object.entries(ATTEMPTS).filter(([name]) => whole || OF_THE_PROCESS.test(name))

    /** Attempts that leave their process as it was share one. */
    const shared = tried.flatMap(([, it]) => (it.setUp === '' ? [it.expression!] : []))
    const reactor = runOf(inRuns(shared))
    let loading: Promise<ReactorOutcome> | undefined
    const loaded = (): Promise<ReactorOutcome> =>
      (loading ??= runner.run(runOf(whileLoaded(shared))))

    async function tryExpression(expression: string, setUp: string): Promise<void> {
      const own = setUp === '' ? null : runOf(inRuns([expression], setUp))
      const n = own === null ? shared.indexOf(expression) : 0
      for (const throws of whole ? [false, true] : [false]) {
        heard.length = 0
        const args = new Sensitive(JSON.stringify({ n, throws }))
        const outcome = await runner.run({ ...(own ?? reactor), args })
        assertHidden(expression, outcome, heard)
        assert.ok(outcome.kind === 'threw' || (outcome.kind === 'returned' && !throws))
        if (outcome.kind === 'returned') assert.notEqual(heard.length, 0)
      }
      if (!whole) return
      const code = whileLoaded([expression], setUp)
      const outcome = await (own === null ? loaded() : runner.run(runOf(code)))
      assert.equal(outcome.kind, 'no-function')
      const parts = outcome.message.split(SEPARATOR)
      assert.equal(parts.length, own === null ? shared.length : 1, 'the error is cut')
      assertHidden(expression, parts[n])
    }

    async function tryCode(code: string): Promise<void> {
      heard.length = 0
      const outcome = await runner.run(runOf(code))
      assertHidden(code, outcome, heard)
      assert.ok(['returned', 'threw', 'no-function'].includes(outcome.kind), code)
    }

    for (const [name, { expression, setUp = '', codes = [] }] of tried) {
      test(name, async () => {
        if (expression !== undefined) await tryExpression(expression, setUp)
        for (const it of whole ? codes : codes.slice(0, 1)) await tryCode(it)
      })
    }

    test('any value that code can reach', async () => {
      const args = JSON.stringify(HIDDEN.map((it) => it.split('').toReversed().join('')))
      const outcome = await runner.run({ ...runOf(WALK), args: new Sensitive(args) })
      assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
      assert.deepEqual(
        outcome.kind === 'returned' && JSON.parse(String(outcome.result.reveal())),
        [],
      )
    })
  })
}

/** Fails if one of the paths is in what the code made known: outcomes and output. */
function assertHidden(code: string, ...known: readonly unknown[]): void {
  const shown = known.map((it) => {
    const outcome = it as Partial<ReactorOutcome> | undefined
    const result = outcome?.kind === 'returned' ? String(outcome.result!.reveal()) : ''
    return `${JSON.stringify(it)} ${typeof it === 'string' ? it : result}`
  })
  for (const it of HIDDEN) assert.ok(!shown.join(' ').includes(it), `${code}: ${shown.join(' ')}`)
}

function runOf(code: string): SandboxRun {
  return {
    tenantId: 'tenant-a',
    reactorId: `reactor-${++runs}`,
    version: '1',
    code,
    args: new Sensitive('{}'),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs: TIMEOUT_MS,
  }
}
