import { closeSync, constants, openSync, statSync } from 'node:fs'
import type { Kernel } from './kernel.ts'

export interface VisibleFiles {
  /** Readable and executable, as programs or libraries. */
  readonly programs: readonly string[]
  /** Readable; a folder with everything below it. */
  readonly readable: readonly string[]
}

/**
 * Restricts this thread, and the program it becomes, to the files in `visible`, without TCP and without access to
 * processes and abstract sockets outside, as far as this kernel supports it. Whatever its Landlock cannot restrict,
 * the seccomp filter refuses on its own. Throws when there is no Landlock at all.
 *
 * Source: the kernel's userspace-api/landlock.
 */
export function restrictToFiles(kernel: Kernel, visible: VisibleFiles): void {
  const version = kernel.call('landlock_create_ruleset', 0, 0, VERSION_FLAG)
  const ruleset = kernel.call('landlock_create_ruleset', ...attributesOf(version), 0)
  for (const file of visible.programs) allow(kernel, ruleset, file, EXECUTE | READ_FILE)
  for (const file of visible.readable) {
    allow(kernel, ruleset, file, statSync(file).isDirectory() ? READ_FILE | READ_DIR : READ_FILE)
  }
  kernel.call('landlock_restrict_self', ruleset, 0)
  closeSync(ruleset)
}

const VERSION_FLAG = 1
const PATH_BENEATH = 1

const EXECUTE = 1 << 0
const READ_FILE = 1 << 2
const READ_DIR = 1 << 3

/** Number of file rights per Landlock version, from version 1 on. */
const FILE_RIGHTS = [13, 14, 15, 15, 16]
/** Rights: bind and connect; scopes: abstract sockets and signals. Each with the version that introduced it. */
const [NET_FROM, NET_RIGHTS] = [4, 0b11]
const [SCOPES_FROM, SCOPES] = [6, 0b11]

/** Handles, and thus forbids without a rule, every right of this version. */
function attributesOf(version: number): [Buffer, number] {
  const size = version >= SCOPES_FROM ? 24 : version >= NET_FROM ? 16 : 8
  const bytes = Buffer.alloc(24)
  const rights = FILE_RIGHTS[Math.min(version, FILE_RIGHTS.length) - 1]!
  bytes.writeBigUInt64LE((1n << BigInt(rights)) - 1n, 0)
  bytes.writeBigUInt64LE(BigInt(NET_RIGHTS), 8)
  bytes.writeBigUInt64LE(BigInt(SCOPES), 16)
  return [bytes, size]
}

function allow(kernel: Kernel, ruleset: number, file: string, rights: number): void {
  const descriptor = openSync(file, constants.O_RDONLY)
  const rule = Buffer.alloc(12)
  rule.writeBigUInt64LE(BigInt(rights), 0)
  rule.writeInt32LE(descriptor, 8)
  kernel.call('landlock_add_rule', ruleset, PATH_BENEATH, rule, 0)
  closeSync(descriptor)
}
