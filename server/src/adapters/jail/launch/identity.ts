import { readFileSync } from 'node:fs'
import type { Kernel } from './kernel.ts'

const PR_CAPBSET_DROP = 24
const LAST_CAPABILITY_EVER = 63
const CAPABILITIES_V3 = 0x20080522

/** Threads of a user that nobody else is. */
const THREADS_MAX = 64
const RLIMIT_NPROC = 6

/**
 * Gives up every privilege this process has, for good; with `ownUser`, also who it is, for a user id that no
 * other process has. Without the right to change it, one stays who one is: the other walls do not depend on it.
 */
export function giveUpPrivileges(kernel: Kernel, ownUser: boolean): void {
  for (let it = 0; it <= LAST_CAPABILITY_EVER; it++) kernel.attempt('prctl', PR_CAPBSET_DROP, it)
  if (ownUser && kernel.attempt('setgroups', 0, 0) >= 0) {
    const id = unusedId()
    kernel.call('setresgid', id, id, id)
    kernel.call('setresuid', id, id, id)
    kernel.call('prlimit64', 0, RLIMIT_NPROC, limitOf(THREADS_MAX), 0)
  }
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

/** Far above what systems hand out; within what this user namespace has, if it has less. */
function unusedId(): number {
  const [inside = 0, , count = 0] = readFileSync('/proc/self/uid_map', 'utf8')
    .trim()
    .split(/\s+/)
    .map(Number)
  const highest = inside + count - 1
  return highest >= FIRST_ID + process.pid ? FIRST_ID + process.pid : highest - (process.pid % 1000)
}

const FIRST_ID = 0x70000000
