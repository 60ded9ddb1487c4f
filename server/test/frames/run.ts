/** Guests that say anything: random sequences of frames, valid or not, to the service's end of their pipe. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { duplexPair, PassThrough, type Duplex } from 'node:stream'
import { diceOf, type Dice } from '../../crash/dice.ts'
import type { WaysOut } from '../../src/adapters/jail/broker.ts'
import { GuestProcess } from '../../src/adapters/jail/guest-process.ts'
import { ResultReader } from '../../src/adapters/jail/result-reader.ts'
import { FRAME, frame, numberedFrame } from '../../src/adapters/jail/guest/frames.ts'
import { SERVICE } from '../../src/adapters/jail/guest/messages.ts'
import type { StartedGuest } from '../../src/adapters/jail/walls.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import { EgressFailure, EgressRefusal } from '../../src/ports/egress.ts'

/** How many sequences ended in each way. */
export type SequenceOutcomes = Record<string, number>

/**
 * Lets `count` guests say a random sequence of frames each, and returns how their runs ended. Rejects if a run has no outcome, or
 * if a dial or a connection is left when its guest has ended.
 */
export async function runSequences(count: number, seed: number): Promise<SequenceOutcomes> {
  const outcomes: SequenceOutcomes = {}
  for (let n = 0; n < count; n++) {
    const outcome = await runSequence(diceOf(seed, n)).catch((cause: unknown) => {
      throw new Error(`sequence ${n} of seed ${seed}`, { cause })
    })
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }
  return outcomes
}

async function runSequence(roll: Dice): Promise<string> {
  const outside = new Outside(roll)
  const child = new SpokenChild()
  const guest = new GuestProcess({
    results: new ResultReader(),
    walls: { begin: () => child.started() },
    setUp: {
      builtIns: [],
      packages: {},
      notInstalled: {},
      hidden: [],
      checks: true,
      withoutSockets: false,
      authorities: [],
      outputBytesMax: 1_000,
      resultBytesMax: 1_000,
      errorBytesMax: 1_000,
    },
    waysOut: outside,
    output: () => {},
    redacts: true,
    hide: (text) => text,
  })
  child.say(frame(FRAME.ready))
  await guest.ready
  const running = guest.run({
    tenantId: 'tenant-a',
    reactorId: 'reactor-a',
    version: '1',
    code: '',
    args: new Sensitive('{}'),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs: 600_000,
  })
  for (const piece of piecesOf(sequence(roll), roll)) {
    child.say(piece)
    if (roll() < 0.2) await new Promise((resolve) => void setImmediate(resolve))
  }
  if (roll() < 0.5) child.end()
  else await new Promise((resolve) => void setImmediate(resolve))
  guest.kill()
  const { kind } = await running
  await guest.ended
  for (let turns = 0; turns < 100 && outside.left > 0; turns++) {
    await new Promise((resolve) => void setImmediate(resolve))
  }
  assert.equal(outside.left, 0, 'dials and connections are left')
  return kind
}

/** Frames in any order, as bytes, some of them damaged. */
function sequence(roll: Dice): Buffer {
  const frames = Array.from({ length: 1 + pick(roll, 30) }, () => randomFrame(roll))
  if (roll() < 0.2) frames.reverse()
  const bytes = Buffer.concat(frames)
  const kind = roll()
  if (kind < 0.1) return bytes.subarray(0, pick(roll, bytes.length))
  if (kind < 0.2) bytes[pick(roll, bytes.length)]! ^= 1 << pick(roll, 8)
  return bytes
}

function randomFrame(roll: Dice): Buffer {
  const number = pick(roll, 6)
  const size = [0, 1, 3, 4, 5, 100, 3_000, 64 * 1024, 64 * 1024 + 1][pick(roll, 9)]!
  const content = Buffer.alloc(size, 'a')
  const host = ['a.test', 'slow.test', 'refused.test', 'gone.test', SERVICE.host][pick(roll, 5)]
  const target = JSON.stringify({ host, port: host === SERVICE.host ? SERVICE.port : 443 })
  const credit = Buffer.alloc(4)
  credit.writeUInt32BE([0, 1, 100, 64 * 1024, 0xffffffff][pick(roll, 5)]!)
  const choices: (() => Buffer)[] = [
    () => numberedFrame(FRAME.open, number, target),
    () => numberedFrame(FRAME.open, number, target),
    () => numberedFrame(FRAME.open, number, target),
    () => numberedFrame(FRAME.data, number, content),
    () => numberedFrame(FRAME.data, number, 'hello'),
    () => numberedFrame(FRAME.credit, number, credit),
    () => numberedFrame(FRAME.finish, number, ''),
    () => numberedFrame(FRAME.close, number, ''),
    () => numberedFrame(FRAME.output, 1, 'a line\n'),
    () => (roll() < 0.2 ? numberedFrame(FRAME.returned, 1, '{"raw":1}') : Buffer.alloc(0)),
    () => (roll() < 0.1 ? numberedFrame(FRAME.threw, 1, content) : Buffer.alloc(0)),
    () => (roll() < 0.2 ? numberedFrame(FRAME.over, 1, '') : Buffer.alloc(0)),
    () => (roll() < 0.1 ? numberedFrame(pick(roll, 256), number, content) : Buffer.alloc(0)),
    () => (roll() < 0.1 ? frame(pick(roll, 256), content) : Buffer.alloc(0)),
    () => (roll() < 0.05 ? Buffer.alloc(5, 0xff) : Buffer.alloc(0)),
  ]
  return choices[pick(roll, choices.length)]!()
}

/** The bytes in pieces of any length. */
function piecesOf(bytes: Buffer, roll: Dice): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const length = 1 + pick(roll, roll() < 0.5 ? 20 : 100_000)
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

function pick(roll: Dice, count: number): number {
  return Math.floor(roll() * count)
}

/** Destinations that echo, answer late or never, refuse, or end. Counts what is not settled or not closed. */
class Outside implements WaysOut {
  readonly #roll: Dice
  left = 0

  constructor(roll: Dice) {
    this.#roll = roll
  }

  async toHost(_: object, host: string, _port: number, signal: AbortSignal): Promise<Duplex> {
    if (host === 'refused.test') throw new EgressRefusal('address')
    this.left += 1
    if (host === 'slow.test' && this.#roll() < 0.7) {
      await new Promise((resolve) => {
        if (signal.aborted) resolve(null)
        signal.addEventListener('abort', resolve)
      })
      this.left -= 1
      throw new EgressFailure('aborted')
    }
    const echo = new PassThrough()
    echo.once('close', () => (this.left -= 1))
    if (host === 'gone.test') setImmediate(() => echo.destroy())
    return echo
  }

  async toService(): Promise<Duplex> {
    return await this.toHost({}, 'a.test', 1, new AbortController().signal)
  }
}

/** A process of which there is nothing but its pipe. */
class SpokenChild extends EventEmitter {
  readonly #guest: Duplex
  readonly stdio: readonly (Duplex | null)[]
  readonly stderr = new PassThrough()
  readonly pid = 1

  constructor() {
    super()
    const [service, guest] = duplexPair()
    this.stdio = [null, null, null, service]
    this.#guest = guest
    guest.on('error', () => {}).resume()
    service.once('close', () => this.kill())
  }

  started(): StartedGuest {
    return { child: this as unknown as ChildProcess, guest: Promise.resolve(this.pid) }
  }

  say(bytes: Buffer): void {
    if (!this.#guest.destroyed) this.#guest.write(bytes)
  }

  end(): void {
    this.#guest.end()
  }

  kill(): void {
    setImmediate(() => this.emit('close', null, 'SIGKILL'))
  }
}
