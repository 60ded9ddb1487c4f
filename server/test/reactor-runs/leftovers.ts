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
  'a channel that does not keep the process': `const channel = new BroadcastChannel('late')
    channel.onmessage = late; channel.unref()`,
  'a port that does not keep the process': `const { port1, port2 } = new MessageChannel()
    port1.onmessage = late; port1.unref(); kept = port2`,
  'a port that notices its end': `const { port1, port2 } = new MessageChannel()
    port1.on('close', late); port1.unref(); kept = port2`,
  'a lock': `navigator.locks.request('late', () => new Promise(() => {}))`,
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
  'frozen objects': 'Object.freeze(Object.prototype)',
  'frozen arrays': 'Object.freeze(Array.prototype)',
  'frozen errors': 'Object.freeze(Error.prototype)',
  'sealed promises': 'Object.seal(Promise.prototype)',
  'no new globals': 'Object.preventExtensions(globalThis)',
  'frozen headers of axios': `Object.freeze(require('axios').defaults.headers.common)`,
  'a property that cannot be set': `Object.defineProperty(Date, 'now', { writable: false })`,
  'several that cannot be set': 'Object.defineProperties(Math, { abs: { writable: false } })',
  'one that can be listed': `Reflect.defineProperty(Array.prototype, 'map', { enumerable: true })`,
  'a property that became an accessor': `const { now } = Date; Date.__defineGetter__('now', () => now)`,

  'a dispatcher of fetch': `globalThis[Symbol.for('undici.globalDispatcher.1')] = { dispatch: late }`,
  'a dispatcher of a fetch that was used': `globalThis[Symbol.for('undici.globalDispatcher.1')] = { dispatch: late }
    await fetch('data:,a')`,
  'another dispatcher of fetch': `await fetch('data:,a')
    const { constructor: Agent } = globalThis[Symbol.for('undici.globalDispatcher.1')]
    globalThis[Symbol.for('undici.globalDispatcher.1')] = new Agent()`,
  'a class of fetch, of a request': `new Request('http://destination.test').headers.constructor.prototype.get = late`,
  'a class of fetch, of a response': `(await fetch('data:,a')).headers.constructor.prototype.get = late`,
  'a class of streams, of a response': `(await fetch('data:,a')).body.constructor.prototype.getReader = late`,

  'a function of web crypto': 'crypto.subtle.digest = late',
  'a function of process.hrtime': 'process.hrtime.bigint = late',
  'a function of process.memoryUsage': 'process.memoryUsage.rss = late',
  'an argument of the process': `process.argv.push('late')`,
  'a version of the process': `process.versions.late = '1'`,
  'a release of the process': `process.release.late = '1'`,
  'a feature of the process': 'process.features.late = true',
  'an exit code': 'process.exitCode = 7',
  'a property of require': 'require.late = args',
  'a module of require': 'require.cache.late = args',
  'a function of require': 'require.resolve.paths = late',
  'an iterator of matches': `Object.getPrototypeOf('a'.matchAll(/a/g)).next = late`,
  'a helper of iterators': 'Object.getPrototypeOf([].values().map(late)).next = late',
  'a wrapped iterator': 'Object.getPrototypeOf(Iterator.from({ next: late })).next = late',
  'an asynchronous iterator': `const { getPrototypeOf } = Object
    getPrototypeOf(getPrototypeOf(getPrototypeOf((async function* () {})())))[Symbol.asyncIterator] = late`,
  'a segment of text': `Object.getPrototypeOf(new Intl.Segmenter().segment('a')).containing = late`,
  'an iterator of segments': `Object.getPrototypeOf(new Intl.Segmenter().segment('a')[Symbol.iterator]()).next = late`,
  'a method of emitters, of the process':
    'Object.getPrototypeOf(Object.getPrototypeOf(process)).on = late',
  'a method of streams, of the output': 'Object.getPrototypeOf(process.stdout).end = late',

  'a mode of crypto': `require('crypto').setFips(true)`,
  'source maps': 'process.setSourceMapsEnabled(true)',

  'a cache of lodash': `require('lodash').memoize.Cache = late`,
  'an identifier of forge': `require('node-forge').pki.oids.late = 'late'`,
  'a status of axios': `require('axios').HttpStatusCode.Ok = 500`,
  'an option of crypto-js': `require('crypto-js').algo.PBKDF2.cfg.iterations = 1`,
  'a block size of crypto-js': `require('crypto-js').algo.AES.blockSize = 1`,
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
  'a closed port': `const { port1, port2 } = new MessageChannel()
    port1.onmessage = late; port1.close(); port2.close()`,
  'a closed channel': `const channel = new BroadcastChannel('late'); channel.onmessage = late; channel.close()`,
  'a port without a listener': 'kept = new MessageChannel()',
  'a lock that is released': `await navigator.locks.request('late', () => {})`,
  'a property of an own object': `Object.defineProperty({}, 'late', { value: late })`,
  'a fetch': `await (await fetch('data:,a')).text()`,
  'a stream': `new ReadableStream(); require('http').WebSocket`,
  'segments of text': `[...new Intl.Segmenter().segment('a')]`,
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
