import { readFileSync } from 'node:fs'
import type { Kernel } from './kernel.ts'
import type { LaunchPlan } from './launch-plan.ts'

const PR_CAPBSET_DROP = 24
const LAST_CAPABILITY_EVER = 63
const CAPABILITIES_V3 = 0x20080522

/** Threads of a user that nobody else is, in all the machine or in its own namespace. */
const THREADS_MAX = 64
const RLIMIT_NPROC = 6

/**
 * Gives up every privilege this process has, for good; with `ownUser`, also who it is, for a user id that no
 * other process has. Without the right to change it, one stays who one is: the other walls do not depend on it.
 */
export function giveUpPrivileges(
  kernel: Kernel,
  { ownUser, runtime }: Pick<LaunchPlan, 'ownUser' | 'runtime'>,
): void {
  for (let it = 0; it <= LAST_CAPABILITY_EVER; it++) kernel.attempt('prctl', PR_CAPBSET_DROP, it)
  if (ownUser && kernel.attempt('setgroups', 0, 0) >= 0) {
    const id = unusedId(process.pid)
    kernel.call('setresgid', id, id, id)
    kernel.call('setresuid', id, id, id)
    kernel.call('prlimit64', 0, RLIMIT_NPROC, limitOf(THREADS_MAX))
  }
  // In a user namespace of its own, only what is in there counts.
  if (runtime !== null) kernel.call('prlimit64', 0, RLIMIT_NPROC, limitOf(THREADS_MAX))
  const header = Buffer.alloc(8)
  header.writeUInt32LE(CAPABILITIES_V3)
  kernel.call('capset', header, Buffer.alloc(24))
}

/** Both the limit and the most it may be raised to. */
export function limitOf(value: number): Buffer {
  const limit = Buffer.alloc(16)
  limit.writeBigUInt64LE(BigInt(value), 0)
  limit.writeBigUInt64LE(BigInt(value), 8)
  return limit
}

/**
 * Returns a user id that nobody has but the guest which is told apart by `which`: far above what systems hand out;
 * within what this user namespace has, if it has less.
 */
export function unusedId(which: number): number {
  const [inside = 0, , count = 0] = readFileSync('/proc/self/uid_map', 'utf8')
    .trim()
    .split(/\s+/)
    .map(Number)
  const highest = inside + count - 1
  return highest >= FIRST_ID + which ? FIRST_ID + which : highest - (which % 1000)
}

const FIRST_ID = 0x70000000
