import type { Attack } from './attack.ts'

/** System calls by number, as native code would make them: what remains when the engine itself is broken. */
const PRELUDE = `
  const koffi = require('koffi')
  const system = koffi.load(null).func('long syscall(long number, long a, long b, long c, long d, long e, long f)')
  const kept = []
  const word = (it) => {
    if (typeof it === 'number') return it
    const bytes = typeof it === 'string' ? Buffer.from(it + '\\0') : it
    kept.push(bytes)
    return koffi.address(bytes)
  }
  const call = (number, ...rest) => Number(system(number, ...[0, 1, 2, 3, 4, 5].map((it) => word(rest[it] ?? 0))))
  const did = (...it) => call(...it) >= 0
  const struct = (length, ...fields) => {
    const bytes = Buffer.alloc(length)
    for (const [offset, value] of fields) bytes.writeBigUInt64LE(BigInt(value), offset)
    return bytes
  }`

/** Numbers of x64; the table of allowed calls is one for both machines. */
const CALLS: readonly (readonly [name: string, code: string])[] = [
  ['make a socket of IPv4', 'did(41, 2, 1, 0)'],
  ['make a socket of IPv6', 'did(41, 10, 2, 0)'],
  ['make a netlink socket', 'did(41, 16, 3, 0)'],
  ['make a unix socket', 'did(41, 1, 1, 0)'],
  ['make a pair of sockets', 'did(53, 1, 1, 0, Buffer.alloc(8))'],
  ['set up io_uring', 'did(425, 8, Buffer.alloc(120))'],
  ['make a file of memory', 'did(319, "a", 0)'],
  ['trace a process', 'did(101, 0x4206, args.victim)'],
  ['compare itself with a process', 'did(312, process.pid, args.victim, 1)'],
  ['hold a process', 'did(434, args.victim, 0)'],
  ['take a file from a process', 'did(438, call(434, args.victim, 0), 0, 0)'],
  ['signal a process', 'did(62, args.victim, 0)'],
  ['signal a thread', 'did(200, args.victim, 0)'],
  ['signal a thread of a process', 'did(234, args.victim, args.victim, 0)'],
  ['have a file signal a process', 'did(72, 2, 8, args.victim)'],
  ['read the limits of a process', 'did(302, args.victim, 7, 0, Buffer.alloc(16))'],
  ['change its own limits', 'did(302, 0, 3, struct(16, [0, 1 << 20], [8, 1 << 20]), 0)'],
  ['bind a process to a processor', 'did(203, args.victim, 8, struct(8, [0, 3]))'],
  ['change its scheduling', 'did(144, 0, 0, Buffer.alloc(4))'],
  ['leave the table of files', 'did(272, 0x400)'],
  ['begin a process', '((it) => (it === 0 ? call(231, 0) : it > 0))(call(56, 17))'],
  [
    'begin a process in a user namespace',
    '((it) => (it === 0 ? call(231, 0) : it > 0))(call(56, 0x10000011))',
  ],
  [
    'begin a process by the newer call',
    '((it) => (it === 0 ? call(231, 0) : it > 0))(call(435, struct(88, [32, 17]), 88))',
  ],
  [
    'become another program',
    `(call(72, 1, 2, 0), did(59, '/bin/echo', struct(24, [0, word('echo')], [8, word('{"kind":"returned","result":true}')]), struct(8)))`,
  ],
  ['open the way back to a new program', 'call(33, 2, 511) === 511'],
  ['handle faults of memory', 'did(323, 1)'],
  ['reach the keyring', 'did(250, 0, -3, 1)'],
  ['add a key', 'did(248, "user", "a", "b", 1, -2)'],
  ['make memory that processes share', 'did(29, 0, 4096, 0o1600)'],
  ['make memory that does not count as its own', 'did(9, 0, 1 << 20, 3, 0x21, -1, 0)'],
  ['make a semaphore', 'did(64, 0, 1, 0o600)'],
  ['make a queue', 'did(68, 0, 0o600)'],
  ['make a queue with a name', 'did(240, "symbolon" + process.pid, 66, 0o600, 0)'],
  ['watch files', 'did(294, 0)'],
  ['change what it is taken for', 'did(135, 0xffffffff)'],
  ['read its segments', 'did(154, 0, Buffer.alloc(16), 16)'],
  ['open a file by the oldest call', 'did(2, "/etc/passwd", 0)'],
  ['open a file by the newest call', 'did(437, -100, "/etc/passwd", Buffer.alloc(24), 24)'],
  ['open a file', 'did(257, -100, "/etc/passwd", 0)'],
  ['make a file', 'did(257, -100, args.folder + "/native", 66, 0o600)'],
  ['open its own program for more than reading', 'did(257, -100, "/dev/null", 2)'],
  ['open a file without a name', 'did(257, -100, args.folder, 0x410002, 0o600)'],
  ['rename a file', 'did(82, args.secretFile, args.secretFile)'],
  ['link a file', 'did(86, args.secretFile, args.folder + "/linked" + process.pid)'],
  ['make a pipe with a name', 'did(133, args.folder + "/pipe" + process.pid, 0o10600)'],
  ['set an attribute of a file', 'did(188, args.secretFile, "user.a", "b", 1)'],
  ['cut a file', 'did(76, args.secretFile, args.canary.length)'],
  ['keep it from ending with the service', 'did(157, 1, 0)'],
  ['be looked into', 'did(157, 4, 1)'],
  ['put a filter of its own', 'did(157, 38, 1) && did(444, struct(8, [0, 1]), 8, 0)'],
  ['send signals by a clock', 'did(222, 1, struct(64, [8, 10]), Buffer.alloc(8))'],
  ['read from a process', 'did(310, args.victim, struct(16), 0, struct(16), 0)'],
]

/** The same, of calls that are root’s alone. */
const CALLS_OF_ROOT: typeof CALLS = [
  ['make a raw socket', 'did(41, 2, 3, 1)'],
  ['make a packet socket', 'did(41, 17, 3, 0)'],
  ['leave a namespace', 'did(272, 0x40000000)'],
  ['mount a file system', 'did(165, "none", "/mnt", "tmpfs", 0, 0)'],
  ['change the root', 'did(161, "/")'],
  ['make a map of BPF', 'did(321, 0, Buffer.from(new Uint32Array([1, 4, 4, 1]).buffer), 16)'],
  ['watch all files', 'did(300, 0, 0)'],
  ['read the log of the kernel', 'did(103, 10, 0, 0)'],
  ['lock memory', 'did(151, 1)'],
]

export const NATIVE_ATTACKS: readonly Attack[] =
  process.arch === 'x64'
    ? [
        ...CALLS.map(([name, code]) => native(name, code)),
        ...CALLS_OF_ROOT.map(([name, code]) => ({ ...native(name, code), byRoot: true as const })),
      ]
    : []

function native(name: string, code: string): Attack {
  return { name: `${name}, natively`, code: `${PRELUDE}; return ${code}` }
}
