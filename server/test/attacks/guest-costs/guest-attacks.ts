/** Code that costs the service as much as it can: descriptors, by opening and closing connections, and memory, by not reading. */

export interface GuestAttack {
  readonly name: string
  /** A statement of an async function of `args`, `bt`, `require` and `n`, which counts up. */
  readonly code: string
  /** How its runs may end. */
  readonly ends: readonly ReactorEnd[]
  /** Whether destinations accept connections of it. */
  readonly connects?: true
  /** Whether its costs show after half a minute only. */
  readonly slow?: true
  /** How many reactors run at once; 1 unless given. */
  readonly concurrency?: number
  /** Whether each runs once, longer than it should take until it is ended. */
  readonly ended?: true
}

/** The status of a response, and the reason in it, if any. */
export type ReactorEnd = '200' | typeof DIED

/** A process that was killed for what it did. */
export const DIED = '500 reactor_error: The reactor ended without an answer.'

/** Where the attacks connect to, by the names of `args`. */
export interface GuestTargets {
  /** Neither accepts connections nor refuses them. */
  readonly silent: { readonly host: string; readonly port: number }
  /** Answers whatever it is sent, over TLS too. */
  readonly open: { readonly host: string; readonly port: number }
  readonly secure: { readonly host: string; readonly port: number }
  /** Sends data without end to each connection: byte after byte, or as much as it takes. */
  readonly trickling: { readonly host: string; readonly port: number }
  readonly flooding: { readonly host: string; readonly port: number }
  /** How long the code goes on. */
  readonly ms: number
}

/** Each opens one connection that is never established, and one that is, and closes both. */
export const OPENING: readonly GuestAttack[] = [
  {
    name: 'net',
    code: opening((it) => `require('net').connect(${it}.port, ${it}.host)`, 'connect'),
    connects: true,
    ends: ['200'],
  },
  {
    name: 'tls',
    code: opening(
      (it) =>
        `require('tls').connect({ ...${it === 'args.open' ? 'args.secure' : it}, rejectUnauthorized: false })`,
      'secureConnect',
    ),
    connects: true,
    ends: ['200'],
  },
  {
    name: 'http',
    code: opening((it) => `require('http').get({ ...${it}, agent: false })`, 'response'),
    connects: true,
    ends: ['200'],
  },
  {
    name: 'https',
    code: opening(
      (it) =>
        `require('https').get({ ...${it === 'args.open' ? 'args.secure' : it}, agent: false, rejectUnauthorized: false })`,
      'response',
    ),
    connects: true,
    ends: ['200'],
  },
  {
    name: 'fetch',
    code: `const given = new AbortController()
      fetch('http://' + args.silent.host + ':' + args.silent.port, given).catch(() => {})
      given.abort()
      if (pending < 100) {
        pending++
        const asked = new AbortController()
        fetch('http://' + args.open.host + ':' + args.open.port, asked)
          .then(() => asked.abort()).catch(() => {}).finally(() => pending--)
      }`,
    connects: true,
    ends: ['200'],
  },
  {
    name: 'bt',
    code: `if (pending < 100) {
        pending++
        bt.tokenize({ n }).catch(() => {}).finally(() => pending--)
      }
      const { sockets, freeSockets } = require('http').globalAgent
      for (const it of [sockets, freeSockets].flatMap(Object.values).flat()) if (n % 3 === 0) it.destroy()`,
    ends: ['200'],
  },
  {
    name: 'frames',
    code: `pipe.write(Buffer.concat([
        frame(68, 2 * n, JSON.stringify(args.silent)), frame(67, 2 * n, ''),
        frame(68, 2 * n + 1, JSON.stringify(args.open)), frame(67, 2 * n + 1, ''),
      ]))`,
    // It lives on if its frames are read so slowly that closed connections are gone before the next are opened.
    ends: ['200', DIED],
  },
  {
    name: 'frames, few at a time',
    code: `pipe.write(Buffer.concat([
        frame(68, 2 * n, JSON.stringify(args.silent)), frame(67, 2 * n, ''),
        frame(68, 2 * n + 1, JSON.stringify(args.open)),
      ]))
      await new Promise((resolve) => setTimeout(resolve, 10))
      pipe.write(frame(67, 2 * n + 1, ''))`,
    connects: true,
    ends: ['200', DIED],
  },
]

/** Each is sent data without end, and reads none of it. */
export const UNREADING: readonly GuestAttack[] = [
  {
    name: 'a process that reads nothing',
    code: `if (n === 1) {
        pipe._handle.readStop()
        for (let it = 0; it < 31; it++) pipe.write(frame(68, 1000 + it, JSON.stringify(args.trickling)))
        await new Promise((resolve) => setTimeout(resolve, 300))
        const bytes = Array.from({ length: 31 }, (_, it) => frame(64, 1000 + it, 'x'))
        const frames = Buffer.concat(Array(250).fill(bytes).flat())
        for (let sent = 0; sent < 64_000; sent += 250) await new Promise((resolve) => pipe.write(frames, resolve))
        await new Promise((resolve) => setTimeout(resolve, 1e6))
      }`,
    connects: true,
    ends: [DIED],
    ended: true,
  },
  {
    name: 'a process that reads nothing, and claims that it did',
    code: `if (n === 1) {
        pipe._handle.readStop()
        for (let it = 0; it < 31; it++) pipe.write(frame(68, 1000 + it, JSON.stringify(args.flooding)))
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
      const credit = Buffer.alloc(4)
      credit.writeUInt32BE(32 * 1024)
      for (let it = 0; it < 31; it++) pipe.write(frame(65, 1000 + it, credit))`,
    connects: true,
    ends: [DIED],
    concurrency: 4,
    ended: true,
  },
  {
    name: 'a process that asks without end, and reads no answer',
    code: `if (n === 1) pipe._handle.readStop()
      const asked = frame(68, n, JSON.stringify({ host: '127.0.0.1', port: 0 }))
      const frames = Buffer.concat(Array(4096).fill(asked))
      for (let it = 0; it < 4096; it++) frames.writeUInt32BE(4096 * n + it, it * asked.length + 5)
      await new Promise((resolve) => pipe.write(frames, resolve))`,
    ends: [DIED],
    concurrency: 4,
    ended: true,
  },
  {
    name: 'a process that reads nothing of its connections',
    code: `if (n === 1) {
        for (let it = 0; it < 31; it++)
          require('net').connect(args.trickling.port, args.trickling.host).on('error', () => {}).pause().write('fill')
      }`,
    slow: true,
    ends: ['200'],
    concurrency: 4,
  },
  {
    name: 'a process that sends a long result byte by byte',
    code: `if (n === 1) {
        const long = Buffer.alloc(9)
        long.writeUInt32BE(5 * 1024 * 1024)
        long[4] = 33
        await new Promise((resolve) => pipe.write(long, resolve))
      }
      while (Date.now() < end) {
        await new Promise((resolve) => pipe.write('x', resolve))
        for (let it = Math.random() * 0; it < 2000; it++);
      }
      process.abort()`,
    slow: true,
    ends: [DIED],
  },
]

/** The code of a reactor that repeats the attack until its time is over. */
export function reactorOf({ code }: GuestAttack): string {
  return `module.exports = async ({ args, bt }) => {
    const pipe = process._getActiveHandles().find((it) => it._handle?.fd === 3)
    const frame = (kind, number, content) => {
      const bytes = Buffer.from(content)
      const it = Buffer.alloc(9 + bytes.length)
      it.writeUInt32BE(4 + bytes.length)
      it[4] = kind
      it.writeUInt32BE(number + 1e6, 5)
      bytes.copy(it, 9)
      return it
    }
    const end = Date.now() + args.ms
    let [n, pending] = [0, 0]
    while (Date.now() < end) {
      n++
      ${code}
      if (n % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    return { raw: n }
  }`
}

/** Closes the one at once, and the other on `event`. */
function opening(open: (target: string) => string, event: string): string {
  return `${open('args.silent')}.on('error', () => {}).destroy()
    if (pending < 100) {
      pending++
      const it = ${open('args.open')}
      it.on('error', () => {}).on('${event}', () => it.destroy()).on('close', () => pending--)
    }`
}
