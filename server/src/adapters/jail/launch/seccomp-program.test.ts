import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { allowedCalls } from './allowed-calls.ts'
import { seccompProgram } from './seccomp-program.ts'
import { machineOf, type CallName } from './syscalls.ts'

const ALLOW = 0x7fff0000
const [EPERM, ENOSYS] = [0x50001, 0x50026]
const KILL = 0x80000000
const PID = 1234

for (const arch of ['x64', 'arm64']) {
  const machine = machineOf(arch)!
  const program = seccompProgram(machine, allowedCalls(PID), ['clone3'])
  const ask = (name: CallName, ...args: (number | bigint)[]): number => {
    return run(program, machine.audit, machine.numbers.get(name)!, args)
  }

  describe(`seccompProgram() for ${arch}`, () => {
    test('is short enough for the kernel', () => {
      assert.ok(program.length / 8 <= 4096)
    })

    test('kills what speaks for another machine', () => {
      assert.equal(run(program, 0x40000003, machine.numbers.get('read')!, []), KILL)
    })

    const allowed: [name: CallName, ...args: (number | bigint)[]][] = [
      ['read', 0, 0, 10],
      ['openat', -100, 0, 0o2000000],
      ['mmap', 0, 4096, 3, 0x22],
      ['mmap', 0, 4096, 1, 0x01],
      ['mmap', 0, 4096, 1, 0x02],
      ['clone', 0x3d0f00],
      ['kill', PID, 6],
      ['tgkill', PID, PID, 6],
      ['prlimit64', 0, 7, 0, 1],
      ['execveat', 511, 0, 0, 0, 0x1000],
    ]
    for (const [name, ...args] of allowed) {
      test(`lets ${name}(${args.join(', ')}) pass`, () => assert.equal(ask(name, ...args), ALLOW))
    }

    const refused: [name: CallName, ...args: (number | bigint)[]][] = [
      ['openat', -100, 0, 1],
      ['openat', -100, 0, 2],
      ['openat', -100, 0, 0o100],
      ['openat', -100, 0, 0o1000],
      ['mmap', 0, 4096, 3, 0x21],
      ['mmap', 0, 4096, 3, 0x23],
      ['clone', 17],
      ['clone', 0x3d0f00 | 0x10000000],
      ['kill', PID + 1, 0],
      ['kill', 0xffffffff, 0],
      ['tgkill', PID + 1, PID, 6],
      ['prlimit64', PID, 7, 0, 1],
      ['prlimit64', 0, 7, 0x1_0000_0000n, 0],
      ['execveat', 510, 0, 0, 0, 0x1000],
      ['execveat', 511, 0, 0, 0, 0],
      ['prctl', 1, 0],
      ['ioctl', 0, 0x5412],
      ['fcntl', 3, 8, 1],
      ['seccomp', 1, 0, 0],
      ['setresuid', 0, 0, 0],
      ['landlock_create_ruleset', 0, 0, 1],
    ]
    for (const [name, ...args] of refused) {
      test(`refuses ${name}(${args.join(', ')})`, () => assert.equal(ask(name, ...args), EPERM))
    }

    test('says of a call that libraries have another way for that it is missing', () => {
      assert.equal(ask('clone3', 0, 88), ENOSYS)
    })

    test('refuses every number that is not on the list', () => {
      const listed = new Set(allowedCalls(PID).map(({ name }) => machine.numbers.get(name)))
      listed.add(machine.numbers.get('clone3'))
      for (let number = 0; number < 600; number++) {
        if (!listed.has(number)) assert.equal(run(program, machine.audit, number, []), EPERM)
      }
    })
  })
}

test('seccompProgram() kills the other set of calls that x64 has', () => {
  const machine = machineOf('x64')!
  const program = seccompProgram(machine, allowedCalls(PID), [])
  assert.equal(run(program, machine.audit, 0x40000000, []), KILL)
})

test('machineOf() knows no machine whose numbers it has not', () => {
  assert.equal(machineOf('riscv64'), null)
})

/** Interprets the few BPF instructions that filters consist of, as the kernel would. */
function run(program: Buffer, audit: number, number: number, args: (number | bigint)[]): number {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(number >>> 0, 0)
  data.writeUInt32LE(audit, 4)
  for (const [index, it] of args.entries()) {
    data.writeBigUInt64LE(BigInt.asUintN(64, BigInt(it)), 16 + 8 * index)
  }
  let accumulator = 0
  for (let at = 0; ; at++) {
    const [code, yes, no] = [0, 2, 3].map((it) => program.readUInt8(at * 8 + it))
    const value = program.readUInt32LE(at * 8 + 4)
    if (code === 0x06) return value
    if (code === 0x20) accumulator = data.readUInt32LE(value)
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0
    else if (code === 0x15) at += accumulator === value ? yes! : no!
    else if (code === 0x35) at += accumulator >= value ? yes! : no!
    else throw new Error(`An instruction that filters do not have: ${code}`)
  }
}
