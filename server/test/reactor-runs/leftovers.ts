/** Reactor code that leaves something behind for a later run, by the name of the leftover, and code that does not. */

/** Statements that run before the function returns. `late` throws. */
export const LEFTOVERS: Readonly<Record<string, string>> = {
  'a timer that throws': 'setTimeout(late, 30)',
  'a timer that throws at once': 'setTimeout(late)',
  'a timer that does not keep the process': 'setTimeout(late, 10).unref()',
  'a timer that ends the process': 'setTimeout(() => process.exit(3), 10)',
  'a timer that aborts the process': 'setTimeout(() => process.abort(), 10)',
  'a timer that emits an error': `setTimeout(() => process.emit('uncaughtException', new Error('late')), 5)`,
  'a timer of a promise': `require('timers/promises').setTimeout(20).then(late)`,
  'a timer of a socket': `new (require('net').Socket)().setTimeout(10, late)`,
  'a timer named as one of fetch': 'function onTick() { late() }; setTimeout(onTick, 5).unref()',
  'an interval': 'setInterval(late, 5)',
  'an interval that does nothing': 'setInterval(() => {}, 1)',
  'an immediate': 'setImmediate(late)',
  'a loop of immediates': 'const again = () => setImmediate(again); again()',
  'a tick': 'process.nextTick(late)',
  'a loop of ticks': 'const again = () => process.nextTick(again); setImmediate(again)',
  'a loop of promises': 'const again = () => Promise.resolve().then(again); setImmediate(again)',
  'an endless loop': 'setImmediate(() => { for (;;); })',
  'an exit at once': 'setImmediate(() => process.exit(0))',
  'an exit in a tick': 'process.nextTick(() => process.exit(0))',
  'an exit in a promise':
    'Promise.resolve().then(() => {}).then(() => {}).then(() => {}).then(() => process.exit())',
  'a rejection': `Promise.reject(new Error('late'))`,
  'a late rejection': `new Promise((_, reject) => setTimeout(reject, 10, new Error('late')))`,
  'a rejection in an immediate': `setImmediate(() => Promise.reject(new Error('late')))`,
  'a socket that connects again': `const again = () => {
    require('net').connect(80, 'destination.test').on('error', () => {}).on('close', again)
  }; again()`,
  'a request': `fetch('http://destination.test')`,
  'work of the thread pool': `require('crypto').pbkdf2('a', 'b', 1e5, 32, 'sha256', late)`,
  compression: `require('zlib').gzip('abc', late)`,
  'a digest': `crypto.subtle.digest('SHA-256', Buffer.alloc(1e6)).then(late)`,
  WebAssembly: `WebAssembly.compile(new Uint8Array([0,97,115,109,1,0,0,0])).then(late)`,
  'a wait for memory':
    'Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10).value.then(late)',
  'a message':
    'const { port1, port2 } = new MessageChannel(); port1.onmessage = late; port2.postMessage(1)',
  'an open port': 'new MessageChannel().port1.onmessage = late',
  'a channel': `new BroadcastChannel('late').onmessage = late`,
  'an import': `import('lodash').then(late)`,
  'an observer': `new (require('perf_hooks').PerformanceObserver)(late).observe({ entryTypes: ['mark'] })`,
  'a hook': `require('async_hooks').createHook({ init: late }).enable()`,
  'a subscription': `require('diagnostics_channel').subscribe('http.client.request.start', late)`,

  'a global': 'globalThis.cache = args',
  'no global': 'delete globalThis.structuredClone',
  'another fetch': 'globalThis.fetch = late',
  'another setTimeout': 'globalThis.setTimeout = late',
  'another setImmediate': 'globalThis.setImmediate = late',
  'no console': 'globalThis.console = null',
  'a method of arrays': `Array.prototype.map = () => ['late']`,
  'a new method of arrays': `Object.defineProperty(Array.prototype, 'late', { value: 1, configurable: true })`,
  'an iterator of arrays': 'Array.prototype[Symbol.iterator] = late',
  'a prototype of arrays': 'Object.setPrototypeOf(Array.prototype, { late: 1 })',
  'a property of objects': 'Object.prototype.late = 1',
  'how numbers are written': `Number.prototype.toJSON = () => 'late'`,
  'JSON.stringify': `JSON.stringify = () => '"late"'`,
  'JSON.parse': `JSON.parse = () => ({ late: 1 })`,
  'a method of promises': 'Promise.prototype.then = late',
  'a method of functions': 'Function.prototype.call = late',
  'a method of strings': 'String.prototype.replaceAll = late',
  'a method of sets': 'Set.prototype.has = late',
  'a method of typed arrays': `Object.getPrototypeOf(Uint8Array).prototype.slice = () => 'late'`,
  'a method of requests': `Headers.prototype.get = () => 'late'`,
  'Date.now': 'Date.now = () => 0',
  'Math.random': 'Math.random = () => 0.5',
  'Buffer.from': 'Buffer.from = late',
  'Buffer.concat': 'Buffer.concat = late',
  'Reflect.ownKeys': 'Reflect.ownKeys = () => []',
  'Error.prepareStackTrace': 'Error.prepareStackTrace = late',
  'Error.stackTraceLimit': 'Error.stackTraceLimit = 0',
  'a method of the console': 'console.log = late',
  'process.stdout': 'process.stdout.write = late',
  'process.env': `process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'`,
  'process.exit': 'process.exit = () => {}',
  'process.nextTick': 'process.nextTick = late',
  'a listener for errors': `process.on('uncaughtException', () => {})`,
  'a listener for rejections': `process.on('unhandledRejection', late)`,
  'a listener for the end': `process.on('beforeExit', late)`,
  'no listeners': 'process.removeAllListeners()',
  'a function of https': `require('https').request = late`,
  'an option of https': `require('https').globalAgent.options.rejectUnauthorized = false`,
  'no agent': `require('http').globalAgent = null`,
  'a method of emitters': `require('events').prototype.emit = late`,
  'a limit of emitters': `require('events').defaultMaxListeners = 1`,
  'a function of crypto': `require('crypto').randomUUID = late`,
  'an option of util': `require('util').inspect.defaultOptions.depth = 0`,
  authorities: `require('tls').setDefaultCACertificates([])`,
  'a header of axios': `require('axios').defaults.headers.common['x-late'] = 'late'`,
  'an interceptor of axios': `require('axios').interceptors.request.use(late)`,
  'a function of lodash': `require('lodash').map = late`,
}

/** Those of which a callback never returns, so that only a timeout ends them. */
export const BLOCKING: ReadonlySet<string> = new Set([
  'a loop of ticks',
  'a loop of promises',
  'an endless loop',
])

/** What ends with its run, although nothing closes it: these processes are kept. */
export const TIDY: Readonly<Record<string, string>> = {
  nothing: '',
  'a module variable': 'kept = args',
  'a finalizer': 'new FinalizationRegistry(late).register({}, 1)',
  'a signal': `AbortSignal.timeout(10).addEventListener('abort', late)`,
  'an open socket': `require('net').connect(80, 'destination.test').on('error', () => {})`,
  'a request that may fail': `fetch('http://destination.test').catch(() => {})`,
  'a cleared timer': 'clearTimeout(setTimeout(late, 10))',
  'a context': `new (require('async_hooks').AsyncLocalStorage)().enterWith('late')`,
  'a promise for ever': 'new Promise(() => {})',
  'work of the thread pool': `require('crypto').scrypt('a', 'b', 16, () => {})`,
  output: `console.log('a'); console.table([{ a: 1 }]); console.count(); process.stdout.write('b')`,
  'output of an immediate': `setImmediate(() => process.stdout.write('late'))`,
  'output of the thread pool': `require('crypto').scrypt('a', 'b', 16, () => process.stderr.write('late'))`,
  'output that is held back': `process.stdout.cork(); process.stderr.cork(); setImmediate(() => console.log('late'))`,
  'another encoding': `process.stdout.setDefaultEncoding('hex')`,
  'a group of the console': 'console.group()',
  'labels of the console': `console.count('a'); console.time('a'); console.timeLog('a')`,
  'a listener of the output': `process.stdout.on('pipe', late)`,
  'a stream into the output': `require('stream/promises').pipeline(['a'], process.stdout, { end: false })`,
  'a mark': `performance.mark('late', { detail: args }); performance.measure('late', 'late')`,
  'a match': `/(?<late>.*)/.exec('late')`,
}

/** Returns code that leaves the one of `leavings` that its arguments say, with a function `late` in it that throws. */
export function leavingCode(leavings: readonly string[]): string {
  const cases = leavings.map((it, n) => `if (args.leave === ${n}) { ${it} }`).join('\n')
  return `const born = require('crypto').randomUUID()
    let kept = null
    const late = () => { throw new Error('a leftover of an earlier run') }
    const reply = async (args) => {
      await null
      const { n } = JSON.parse(JSON.stringify({ n: args.n }))
      const list = [...new Set([1, 2])].map((it) => it * 2)
      return { n, list, text: 'a-b'.replaceAll('-', '+'), late: {}.late ?? null, born }
    }
    const traces = () => [RegExp.$1 === 'late', performance.getEntries().length, process.stdout.listenerCount('pipe')]
    module.exports = async ({ args }) => {
      const found = traces()
      console.log('run', args.n)
      const raw = { ...(await reply(args)), traces: found }
      ${cases}
      return { raw }
    }`
}
