import type { Attack } from './attack.ts'

/** A connection made below everything that could have been replaced. Resolves with what the other side says. */
const RAW_TCP = `
  const { TCP, TCPConnectWrap, constants } = process.binding('tcp_wrap')
  const reach = (address) => new Promise((resolve) => {
    const handle = new TCP(constants.SOCKET), request = new TCPConnectWrap()
    request.oncomplete = (status) => resolve(status === 0)
    const method = address.includes(':') ? 'connect6' : 'connect'
    if (handle[method](request, address, args.port) !== 0) resolve(false)
  })`

const OVER_NET = `
  const net = require('net')
  const ask = (where) => new Promise((resolve, reject) => {
    net.connect(where, () => resolve(true)).on('error', reject)
  })`

const TAKE = 600e6

/** Attacks through the language and the runtime, with no feature switched off. */
export const JAVASCRIPT_ATTACKS: readonly Attack[] = [
  { name: 'read the passwd file', code: `return require('fs').readFileSync('/etc/passwd').length` },
  {
    name: 'read the database',
    code: `return String(require('fs').readFileSync(args.secretFile)) === args.canary`,
  },
  {
    name: 'read it by a link of /proc',
    code: `return require('fs').readFileSync('/proc/self/root' + args.secretFile).length`,
  },
  { name: 'list a folder', code: `return require('fs').readdirSync('/').length` },
  {
    name: 'read the environment of the service',
    code: `return require('fs').readFileSync('/proc/' + process.ppid + '/environ').includes(args.canary)`,
  },
  {
    name: 'read the environment of a process beside it',
    code: `return require('fs').readFileSync('/proc/' + args.victim + '/environ').length`,
  },
  {
    name: 'read the command line of the service',
    code: `return require('fs').readFileSync('/proc/' + process.ppid + '/cmdline').length`,
  },
  {
    name: 'find a secret in its own environment',
    code: `return Object.values(process.env).includes(args.canary)`,
  },
  {
    name: 'write its own memory by /proc',
    code: `return require('fs').openSync('/proc/self/mem', 'r+')`,
  },
  {
    name: 'read the map of its own memory',
    code: `return require('fs').readFileSync('/proc/self/maps').length`,
  },
  {
    name: 'load settings from a file',
    code: `process.loadEnvFile(args.secretFile); return true`,
  },
  {
    name: 'import a file as a module',
    code: `return (await import('data:text/javascript,import fs from "fs"; export default fs.readFileSync("/etc/passwd").length')).default`,
  },
  {
    name: 'install hooks of the module loader that read files',
    apart: true,
    code: `const hook = 'data:text/javascript,import fs from "fs"; export async function resolve(it, context, next) { return it === "x:" ? { url: "data:text/javascript,export default " + fs.readFileSync("/etc/passwd").length, shortCircuit: true } : next(it, context) }'
      require('module').register(hook)
      return (await import('x:')).default`,
  },
  {
    name: 'read files from a worker thread',
    apart: true,
    code: `const { Worker } = require('worker_threads')
      const worker = new Worker('require("worker_threads").parentPort.postMessage(require("fs").readFileSync("/etc/passwd").length)', { eval: true })
      return await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject))`,
  },
  {
    name: 'open a database',
    code: `const { DatabaseSync } = require('node:sqlite')
      new DatabaseSync(args.folder + '/new.db').exec('CREATE TABLE a (b)'); return true`,
  },
  {
    name: 'write a file',
    code: `require('fs').writeFileSync(args.folder + '/a', 'a'); return true`,
  },
  { name: 'make a folder', code: `require('fs').mkdirSync(args.folder + '/made'); return true` },
  {
    name: 'make a link',
    code: `require('fs').symlinkSync('/etc/passwd', args.folder + '/link'); return true`,
  },
  {
    name: 'change the times of a file',
    code: `require('fs').utimesSync(args.secretFile, 1, 1); return true`,
  },
  {
    name: 'change the mode of a file',
    code: `require('fs').chmodSync(args.secretFile, 0o600); return true`,
  },
  {
    name: 'fill the disk',
    apart: true,
    code: `require('fs').writeFileSync(args.folder + '/full', Buffer.alloc(2e7)); return true`,
  },
  {
    name: 'write a report',
    code: `return process.report.writeReport(args.folder + '/report.json') && require('fs').statSync(args.folder + '/report.json').size`,
  },
  {
    name: 'write a snapshot of the heap',
    apart: true,
    code: `return require('v8').writeHeapSnapshot(args.folder + '/heap')`,
  },
  {
    name: 'start a program',
    code: `return require('child_process').execFileSync('/bin/sh', ['-c', 'echo 1']).length`,
  },
  {
    name: 'start itself again',
    code: `return require('child_process').execFileSync(process.execPath, ['-p', '1']).length`,
  },
  {
    name: 'start a program by the binding below',
    code: `const { pid, status } = process.binding('spawn_sync').spawn({ file: '/bin/sh', args: ['sh', '-c', 'true'], stdio: [{ type: 'ignore' }] })
      return pid > 0 && status === 0`,
  },
  {
    name: 'load a library that it wrote',
    code: `const fs = require('fs'), path = require('path')
      const written = args.folder + '/written.node'
      fs.copyFileSync(require.resolve('koffi').replace(/koffi.index.cjs$/, '@koromix/koffi-linux-x64/linux_x64/koffi.node'), written)
      process.dlopen({ exports: {} }, written); return true`,
  },
  {
    name: 'connect to loopback',
    code: `${OVER_NET}; return await ask({ host: '127.0.0.1', port: args.port })`,
  },
  {
    name: 'connect to loopback by fetch',
    code: `return (await fetch('http://127.0.0.1:' + args.port)).status`,
  },
  { name: 'connect to loopback below net', code: `${RAW_TCP}; return await reach('127.0.0.1')` },
  { name: 'connect to loopback by IPv6', code: `${RAW_TCP}; return await reach('::1')` },
  {
    name: 'connect to loopback by IPv4 inside IPv6',
    code: `${RAW_TCP}; return await reach('::ffff:127.0.0.1')`,
  },
  {
    name: 'connect to the metadata address',
    code: `${RAW_TCP}; return await reach('169.254.169.254')`,
  },
  { name: 'connect to a private address', code: `${RAW_TCP}; return await reach('10.0.0.5')` },
  {
    name: 'send a packet',
    seen: 'packets',
    code: `const socket = require('dgram').createSocket('udp4')
      socket.on('error', () => {})
      await new Promise((resolve) => socket.send(args.canary, args.udpPort, '127.0.0.1', resolve))`,
  },
  {
    name: 'listen',
    code: `return await new Promise((resolve, reject) => require('net').createServer().listen(0, '127.0.0.1', () => resolve(true)).on('error', reject))`,
  },
  {
    name: 'connect to a socket in the file system',
    code: `${OVER_NET}; return await ask(args.unixSocket)`,
  },
  {
    name: 'connect to it below net',
    code: `const { Pipe, PipeConnectWrap, constants } = process.binding('pipe_wrap')
      return await new Promise((resolve) => {
        const handle = new Pipe(constants.SOCKET), request = new PipeConnectWrap()
        request.oncomplete = (status) => resolve(status === 0)
        handle.connect(request, args.unixSocket)
      })`,
  },
  {
    name: 'connect to an abstract socket',
    code: `const { Pipe, PipeConnectWrap, constants } = process.binding('pipe_wrap')
      return await new Promise((resolve) => {
        const handle = new Pipe(constants.SOCKET), request = new PipeConnectWrap()
        request.oncomplete = (status) => resolve(status === 0)
        handle.connect(request, args.abstractSocket)
      })`,
  },
  {
    name: 'look up a name by the system',
    code: `return (await require('dns').promises.lookup('localhost')).address`,
  },
  { name: 'signal the service', code: `return process.kill(process.ppid, 0)` },
  { name: 'kill a process', seen: 'victim', code: `process.kill(args.victim, 'SIGKILL')` },
  {
    name: 'send a process the signal to debug',
    seen: 'victim',
    code: `process.kill(args.victim, 'SIGUSR1')`,
  },
  { name: 'signal everybody', code: `return process.kill(-1, 0)` },
  { name: 'signal its group', code: `return process.kill(0, 0)` },
  {
    name: 'open a debugger',
    apart: true,
    code: `const inspector = require('inspector'); inspector.open(0, '127.0.0.1'); return inspector.url()`,
  },
  {
    name: 'change flags of the engine',
    apart: true,
    code: `require('v8').setFlagsFromString('--allow-natives-syntax'); return eval('%GetOptimizationStatus(() => 1)') >= 0`,
  },
  {
    name: 'raise its priority',
    apart: true,
    code: `const os = require('os'); os.setPriority(os.getPriority()); return true`,
  },
  {
    name: 'pollute prototypes for the next',
    code: `Object.prototype.polluted = 1`,
    next: `return {}.polluted`,
  },
  {
    name: 'leave a global for the next',
    code: `globalThis.left = args.canary`,
    next: `return globalThis.left`,
  },
  {
    name: 'replace fetch for the next',
    code: `globalThis.fetch = () => 'poisoned'`,
    next: `return globalThis.fetch('data:,') === 'poisoned'`,
  },
  {
    name: 'poison a module for the next',
    code: `require('lodash').camelCase = () => 'poisoned'`,
    next: `return require('lodash').camelCase('a b') === 'poisoned'`,
  },
  {
    name: 'patch a built-in module for the next',
    code: `require('crypto').randomUUID = () => 'poisoned'`,
    next: `return require('crypto').randomUUID() === 'poisoned'`,
  },
  { name: 'loop for ever', endless: true, code: `for (;;);` },
  { name: 'match for ever', endless: true, code: `return /^(a+)+$/.test('a'.repeat(50) + '!')` },
  {
    name: 'sleep for ever',
    endless: true,
    code: `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`,
  },
  {
    name: 'never answer',
    endless: true,
    code: `setInterval(() => {}, 1e3); await new Promise(() => {})`,
  },
  {
    name: 'take 600 MB of buffers',
    apart: true,
    code: `const all = []; while (all.length < ${TAKE / 1e7}) all.push(Buffer.alloc(1e7, 1)); return all.length`,
  },
  {
    name: 'take 600 MB of objects',
    apart: true,
    code: `const all = []; while (all.length < ${TAKE / 8e5}) all.push(new Array(1e5).fill(1.5)); return all.length`,
  },
  {
    name: 'take 600 MB of shared memory',
    apart: true,
    code: `return new Uint8Array(new SharedArrayBuffer(${TAKE})).fill(1).length`,
  },
  {
    name: 'take 600 MB of WebAssembly memory',
    apart: true,
    code: `return new Uint8Array(new WebAssembly.Memory({ initial: ${Math.ceil(TAKE / 65536)} }).buffer).fill(1).length`,
  },
  {
    name: 'take 600 MB in worker threads',
    apart: true,
    code: `const { Worker } = require('worker_threads')
      const one = () => new Promise((resolve, reject) => new Worker('globalThis.all = Buffer.alloc(1.5e8, 1); require("worker_threads").parentPort.postMessage(1); setInterval(() => {}, 1e3)', { eval: true }).on('message', resolve).on('error', reject))
      return (await Promise.all([one(), one(), one(), one()])).length`,
  },
  {
    name: 'open a thousand files',
    apart: true,
    code: `const fs = require('fs'); for (let it = 0; it < 1000; it++) fs.openSync(process.execPath); return true`,
  },
  {
    name: 'start twenty programs',
    apart: true,
    code: `const { spawn } = require('child_process'); const all = Array.from({ length: 20 }, () => spawn('/bin/sleep', ['5']))
      await Promise.all(all.map((it) => new Promise((resolve, reject) => it.on('spawn', resolve).on('error', reject)))); return true`,
  },
]
