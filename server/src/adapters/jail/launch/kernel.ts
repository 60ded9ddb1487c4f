import { getSystemErrorMap } from 'node:util'
import koffi from 'koffi'
import { machineOf, type CallName, type Machine } from './syscalls.ts'

/** A number, or a buffer whose address the call reads or writes. */
export type SyscallArgument = number | bigint | Buffer

/** Direct system calls: no library of Node offers those needed here. */
export class Kernel {
  readonly machine: Machine
  readonly #syscall: (...args: (number | bigint)[]) => number | bigint

  /** Throws on a machine whose call numbers are not listed. */
  constructor() {
    const machine = machineOf(process.arch)
    if (machine === null) throw new Error(`Cannot build walls on ${process.arch}: not supported`)
    this.machine = machine
    this.#syscall = koffi
      .load(null)
      .func('long syscall(long number, long a, long b, long c, long d, long e)')
  }

  /** Returns the call's result; throws with the names of the call and the error. */
  call(name: CallName, ...args: readonly SyscallArgument[]): number {
    const result = this.attempt(name, ...args)
    if (result >= 0) return result
    const [code = 'an unknown error'] = getSystemErrorMap().get(result) ?? []
    throw new KernelRefusal(name, code)
  }

  /** Returns the negative error number instead of throwing. */
  attempt(name: CallName, ...args: readonly SyscallArgument[]): number {
    const number = this.machine.numbers.get(name)
    if (number === undefined) return -38
    const words = [0, 1, 2, 3, 4].map((index) => wordOf(args[index] ?? 0))
    const result = Number(this.#syscall(number, ...words))
    return result >= 0 ? result : -koffi.errno()
  }
}

export class KernelRefusal extends Error {
  override readonly name = 'KernelRefusal'
  readonly code: string

  constructor(call: CallName, code: string) {
    super(`${call}: ${code}`)
    this.code = code
  }
}

/** Returns the address of `bytes`, valid while `bytes` is referenced. */
export function addressOf(bytes: Buffer): bigint {
  return koffi.address(bytes)
}

function wordOf(argument: SyscallArgument): number | bigint {
  return Buffer.isBuffer(argument) ? addressOf(argument) : argument
}
