/**
 * The launcher: builds the walls around itself, then becomes the guest. Runs as a program of its own, once per guest.
 *
 * Passes on only the first four descriptors. If a wall cannot be built, it stops with a message on stderr. Decision
 * 0030.
 */
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { assertAlone } from './alone.ts'
import { allowedCalls, AT_EMPTY_PATH, RUNTIME_DESCRIPTOR } from './allowed-calls.ts'
import type { LaunchPlan } from './launch-plan.ts'

const PR_SET_PDEATHSIG = 1
const PR_SET_NO_NEW_PRIVS = 38
const SIGKILL = 9

const CLOSE_RANGE_CLOEXEC = 4
const FIRST_OWN_DESCRIPTOR = 4
const O_CLOEXEC = 0x80000
const F_SETFD = 2

/** Lowest priority: the service never waits for guests, and any other process that wakes up preempts them. */
const NICENESS = 19
const SCHED_IDLE = 5

const RLIMIT = { fsize: 1, data: 2, core: 4, nofile: 7 }
const DESCRIPTORS_MAX = 256

const SECCOMP_SET_MODE_FILTER = 1

const plan: LaunchPlan = JSON.parse(process.argv[2]!)
if (plan.runtime !== null) assertAlone()
// Before the bindings to the kernel load: the guest needs the files of Node, not theirs.
const runtime = plan.runtime ?? mappedFiles()
const { addressOf, Kernel } = await import('./kernel.ts')
const { giveUpPrivileges, limitOf } = await import('./identity.ts')
const { restrictToFiles } = await import('./landlock.ts')
const { seccompProgram } = await import('./seccomp-program.ts')
// Node flushes the cache on exit, but this process never exits: it becomes another program.
flushCompileCache()

const kernel = new Kernel()
/** Keeps buffers alive that the kernel reads by address. */
const kept: Buffer[] = []

process.chdir('/')
// Makes guests the kernel's first choice when memory runs out. Without /proc, the process that started bubblewrap does
// it.
if (plan.runtime === null) writeFileSync('/proc/self/oom_score_adj', '1000')
const executable = openSync(process.execPath, 'r')
kernel.call('dup3', executable, RUNTIME_DESCRIPTOR, O_CLOEXEC)
closeSync(executable)

kernel.call('setpriority', 0, 0, NICENESS)
// Containers may forbid it; the nice value remains.
kernel.attempt('sched_setscheduler', 0, SCHED_IDLE, Buffer.alloc(4))
giveUpPrivileges(kernel, plan)
kernel.call('prctl', PR_SET_NO_NEW_PRIVS, 1)
// After the change of user, which clears it.
kernel.call('prctl', PR_SET_PDEATHSIG, SIGKILL)
if (process.ppid !== plan.parent) process.exit(1)

restrictToFiles(kernel, { programs: runtime, readable: plan.readable })
kernel.call('prlimit64', 0, RLIMIT.core, limitOf(0))
kernel.call('prlimit64', 0, RLIMIT.fsize, limitOf(0))
kernel.call('prlimit64', 0, RLIMIT.data, limitOf(plan.dataBytesMax))
kernel.call('close_range', FIRST_OWN_DESCRIPTOR, 0xffffffff, CLOSE_RANGE_CLOEXEC)
// Node marked these close-on-exec when it started.
for (let it = 0; it < FIRST_OWN_DESCRIPTOR; it++) kernel.call('fcntl', it, F_SETFD, 0)

const args = stringArray([plan.name, ...plan.arguments])
const variables = stringArray(plan.variables)
const filter = seccompProgram(kernel.machine, allowedCalls(process.pid), ['clone3'])
const program = Buffer.alloc(16)
program.writeUInt16LE(filter.length / 8, 0)
program.writeBigUInt64LE(addressOf(filter), 8)
const nothing = Buffer.alloc(1)

kernel.call('prlimit64', 0, RLIMIT.nofile, limitOf(DESCRIPTORS_MAX))
kernel.call('seccomp', SECCOMP_SET_MODE_FILTER, 0, program)
kernel.call('execveat', RUNTIME_DESCRIPTOR, nothing, args, variables, AT_EMPTY_PATH)

/** Returns the files mapped into this process: program, loader, libraries. */
function mappedFiles(): string[] {
  const files = new Set(['/etc/ld.so.cache', '/dev/null'])
  for (const line of readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    const [, , , , inode, file] = line.split(/\s+/, 6)
    if (inode !== undefined && inode !== '0' && file?.startsWith('/') === true) files.add(file)
  }
  return [...files]
}

/** Returns a C string array: pointers, then null. `kept` keeps the strings alive. */
function stringArray(values: readonly string[]): Buffer {
  const strings = values.map((it) => Buffer.from(`${it}\0`))
  kept.push(...strings)
  const pointers = Buffer.alloc(8 * (values.length + 1))
  for (const [index, it] of strings.entries()) pointers.writeBigUInt64LE(addressOf(it), index * 8)
  return pointers
}
