import type { AllowedCall, ArgumentCondition } from './allowed-calls.ts'
import type { CallName, Machine } from './syscalls.ts'

/**
 * Returns the seccomp filter, as BPF bytecode, that permits only `allowed`.
 *
 * A call of another architecture kills the process. Calls that are not allowed fail with EPERM, an error that code can
 * handle. Calls in `missing` fail with ENOSYS, so that libraries use their fallback.
 *
 * Source: the kernel's userspace-api/seccomp_filter; layout of struct seccomp_data and sock_filter.
 */
export function seccompProgram(
  machine: Machine,
  allowed: readonly AllowedCall[],
  missing: readonly CallName[],
): Buffer {
  const code: Instruction[] = [
    load(ARCH),
    { code: JUMP_EQUAL, yes: 1, no: 0, value: machine.audit },
    give(KILL),
    load(NUMBER),
  ]
  if (machine.foreignFrom !== null) {
    code.push({ code: JUMP_GREATER_EQUAL, yes: 0, no: 1, value: machine.foreignFrom }, give(KILL))
  }
  for (const { name, only = [] } of allowed) {
    const number = machine.numbers.get(name)
    if (number === undefined) continue
    const body = [...only.flatMap(check), give(ALLOW)]
    code.push({ code: JUMP_EQUAL, yes: 0, no: body.length, value: number }, ...body)
  }
  for (const name of missing) {
    const number = machine.numbers.get(name)
    if (number === undefined) continue
    code.push({ code: JUMP_EQUAL, yes: 0, no: 1, value: number }, give(ERROR | ENOSYS))
  }
  code.push(give(ERROR | EPERM))
  return assemble(code)
}

interface Instruction {
  readonly code: number
  readonly yes: number
  readonly no: number
  readonly value: number
}

const LOAD = 0x20
const AND = 0x54
const JUMP_EQUAL = 0x15
const JUMP_GREATER_EQUAL = 0x35
const RETURN = 0x06

const NUMBER = 0
const ARCH = 4
const ARGUMENTS = 16

const ALLOW = 0x7fff0000
const ERROR = 0x00050000
const KILL = 0x80000000
const EPERM = 1
const ENOSYS = 38

/** Continues if the condition holds, else refuses. Both architectures are little-endian: the low half comes first. */
function check({ argument, mask, anyOf, wide }: ArgumentCondition): Instruction[] {
  const low = ARGUMENTS + 8 * argument
  const upperHalf = [
    load(low + 4),
    { code: JUMP_EQUAL, yes: 1, no: 0, value: 0 },
    give(ERROR | EPERM),
  ]
  return [
    ...(wide === true ? upperHalf : []),
    load(low),
    ...(mask === undefined ? [] : [{ code: AND, yes: 0, no: 0, value: mask }]),
    ...anyOf.map((value, index) => {
      return { code: JUMP_EQUAL, yes: anyOf.length - index, no: 0, value }
    }),
    give(ERROR | EPERM),
  ]
}

function load(offset: number): Instruction {
  return { code: LOAD, yes: 0, no: 0, value: offset }
}

function give(verdict: number): Instruction {
  return { code: RETURN, yes: 0, no: 0, value: verdict }
}

function assemble(code: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(code.length * 8)
  for (const [index, it] of code.entries()) {
    bytes.writeUInt16LE(it.code, index * 8)
    bytes.writeUInt8(it.yes, index * 8 + 2)
    bytes.writeUInt8(it.no, index * 8 + 3)
    bytes.writeUInt32LE(it.value >>> 0, index * 8 + 4)
  }
  return bytes
}
