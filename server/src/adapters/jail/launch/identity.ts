import { readFileSync } from 'node:fs'
import type { Kernel } from './kernel.ts'
import type { LaunchPlan } from './launch-plan.ts'

const PR_CAPBSET_DROP = 24
const LAST_CAPABILITY_EVER = 63
const CAPABILITIES_V3 = 0x20080522

/** Limit on threads of a user that no other process has, on the machine or in its namespace. */
const THREADS_MAX = 64
const RLIMIT_NPROC = 6

/**
 * Drops all privileges for good. With `ownUser`, also changes to a user id that no other process has. Without the right
 * to change it, keeps the current user: the other walls do not depend on it.
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
  // In a user namespace of its own, only the guest's threads count.
  if (runtime !== null) kernel.call('prlimit64', 0, RLIMIT_NPROC, limitOf(THREADS_MAX))
  const header = Buffer.alloc(8)
  header.writeUInt32LE(CAPABILITIES_V3)
  kernel.call('capset', header, Buffer.alloc(24))
}

/** Returns an rlimit with equal soft and hard limits. */
export function limitOf(value: number): Buffer {
  const limit = Buffer.alloc(16)
  limit.writeBigUInt64LE(BigInt(value), 0)
  limit.writeBigUInt64LE(BigInt(value), 8)
  return limit
}

/**
 * Returns a user id for the guest `which` that no other process uses: far above the ids that systems assign, or, in a
 * smaller user namespace, near its upper end.
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
