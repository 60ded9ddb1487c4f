import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { Duplex, Readable } from 'node:stream'
import {
  REACTOR_ERROR_BYTES_MAX,
  REACTOR_HEAP_MIB,
  REACTOR_LEFTOVER_CHARS_MAX,
  REACTOR_OUTPUT_BYTES_MAX,
  REACTOR_STDERR_BYTES_MAX,
} from '../../base/limits.ts'
import type { ReactorOutcome, SandboxRun } from '../../ports/reactor-runner.ts'
import { Broker, type WaysOut } from './broker.ts'
import { GuestChannel } from './guest-channel.ts'
import { FRAME, outputCost, textFrame, type Frame } from './guest/frames.ts'
import type { GuestRun, GuestSetUp } from './guest/messages.ts'
import { parseThrown } from './parse-thrown.ts'
import { redactor } from './redact.ts'
import type { ResultReader } from './result-reader.ts'
import { CHANNEL, type Walls } from './walls.ts'

/** Settings common to all guests. */
export interface GuestSettings {
  readonly walls: Walls
  readonly setUp: GuestSetUp
  readonly waysOut: WaysOut
  readonly results: Pick<ResultReader, 'read'>
  readonly output: ReactorOutput | null
  /** Whether to redact the values that a reactor was given from its output. */
  readonly redacts: boolean
  /** Replaces paths of the installation in errors and output. */
  readonly hide: (text: string) => string
}

/** Receives a reactor's console output, piece by piece. */
export type ReactorOutput = (run: SandboxRun, text: string) => void

/**
 * One process behind the walls. It starts prewarmed; its first run binds it to one reactor until it ends. One run at a
 * time.
 *
 * Its output is treated as an attacker's: bounded and parsed strictly, and any violation of the protocol kills the
 * process.
 */
export class GuestProcess {
  /** Resolves when it is ready for a run; rejects with the reason if it cannot start. */
  readonly ready: Promise<void>
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  /** Resolves when the guest's process id is known. */
  readonly #guest: Promise<void>
  #id: number | null = null
  readonly #channel: GuestChannel
  #complaint = ''
  #begun: { resolve: () => void; reject: (error: Error) => void } | null
  readonly #broker: Broker
  readonly #results: GuestSettings['results']
  readonly #output: ReactorOutput | null
  readonly #redacts: boolean
  readonly #hide: (text: string) => string
  #current: CurrentRun | null = null
  #over: OverRun | null = null
  #runs = 0
  #killedFor: 'timed-out' | 'out-of-memory' | null = null
  #gone = false
  #privateBytesMax = 0
  #leftover: string | null = null

  constructor({ walls, setUp, waysOut, results, output, redacts, hide }: GuestSettings) {
    const flags = [...RUNTIME_FLAGS, ...(setUp.checks ? ['--no-addons'] : [])]
    const { child, guest } = walls.begin(flags)
    this.#child = child
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#begun = { resolve, reject }
    this.#guest = guest.then((id) => void (this.#id = id))
    this.#guest.catch(() => child.kill('SIGKILL'))
    this.ready = Promise.all([promise, this.#guest]).then(ignore)
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    this.ended = ended
    this.#channel = new GuestChannel(this.#child.stdio[CHANNEL] as Duplex, {
      frame: (it) => this.#take(it),
      fault: () => this.kill(),
      drained: () => this.#broker.resume(),
    })
    this.#results = results
    this.#output = output
    this.#redacts = redacts
    this.#hide = hide
    this.#broker = new Broker(waysOut, this.#channel)
    this.#channel.sendInput(textFrame(FRAME.setUp, JSON.stringify(setUp)))
    this.#listenToErrors(this.#child.stderr!)
    this.#child.once('error', (error) => {
      this.#end(error)
      end()
    })
    this.#child.once('close', (code, signal) => {
      const by = signal ?? signalOf(code)
      this.#end(new Error(`${this.#complaint.trim() || 'It ended'} (${by ?? code})`), by)
      end()
    })
  }

  get gone(): boolean {
    return this.#gone
  }

  /** Process id of the guest itself; null before it is known. */
  get id(): number | null {
    return this.#id
  }

  /**
   * Waits for the last run, which has its outcome, to finish. Resolves with true if it left nothing behind, so that the
   * process may be used again. Kills the process if that takes more than `timeoutMs`.
   *
   * The code controls the report. A false one affects only later runs of its own reactor.
   */
  async over(timeoutMs: number): Promise<boolean> {
    if (this.#over === null || this.#gone) return false
    const tooLong = setTimeout(() => {
      this.#leave('a callback that does not return')
      this.kill()
    }, timeoutMs).unref()
    const leftover = await this.#over.leftover
    clearTimeout(tooLong)
    this.#over = null
    if (leftover !== '') this.kill()
    return leftover === ''
  }

  /** The leftover of the last run, as its process reports it; empty if there is none, null if unknown. */
  get leftover(): string | null {
    return this.#leftover
  }

  /** Runs the code of `run`, which must have the same reactor and version as all earlier runs. */
  async run(run: SandboxRun): Promise<ReactorOutcome> {
    if (this.#over !== null) throw new Error('Cannot run code: the last run is not over')
    const number = ++this.#runs
    this.#leftover = null
    if (this.#gone) return { kind: 'died' }
    const { promise, resolve } = Promise.withResolvers<ReactorOutcome>()
    const deadline = setTimeout(() => this.kill('timed-out'), run.timeoutMs)
    this.#current = {
      run,
      number,
      outputLeft: REACTOR_OUTPUT_BYTES_MAX,
      redact: this.#redacts ? null : asSaid,
      settle: (outcome) => {
        clearTimeout(deadline)
        resolve(outcome)
      },
    }
    const message: GuestRun = { run: number, apiKey: run.apiKey?.reveal() ?? null }
    const frames = [
      textFrame(FRAME.configuration, run.configuration.reveal()),
      textFrame(FRAME.args, run.args.reveal()),
      textFrame(FRAME.run, JSON.stringify(message)),
    ]
    if (number === 1) frames.unshift(textFrame(FRAME.code, run.code))
    this.#channel.sendInput(Buffer.concat(frames))
    return await promise
  }

  /** Stops the process until thaw(), so that it uses no processor time. */
  freeze(): void {
    this.#signal('SIGSTOP')
  }

  thaw(): void {
    this.#signal('SIGCONT')
  }

  /** Kills the process; a run in progress ends with `reason`. */
  kill(reason: 'timed-out' | 'out-of-memory' | null = null): void {
    this.#killedFor ??= reason
    this.#signal('SIGKILL')
    this.#settle({ kind: this.#killedFor ?? 'died' })
    this.#leave(ENDED)
    this.#gone = true
    this.#channel.close()
  }

  /** Private (unshared) resident memory in bytes; 0 once the process has ended. */
  privateBytes(): number {
    try {
      const [, resident = 0, shared = 0] = readFileSync(`/proc/${this.id}/statm`, 'utf8')
        .split(' ')
        .map(Number)
      const bytes = (resident - shared) * PAGE_BYTES
      this.#privateBytesMax = Math.max(this.#privateBytesMax, bytes)
      return bytes
    } catch {
      return 0
    }
  }

  /** Peak of privateBytes(), as far as observed. */
  privateBytesMax(): number {
    this.privateBytes()
    return this.#privateBytesMax
  }

  /**
   * Signals the guest only while it is our child or our child's child: after that, its id may belong to another
   * process.
   */
  #signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void {
    const id = this.#id
    if (id === null) void this.#guest.then(() => this.#signal(signal), ignore)
    else if (id === this.#child.pid) this.#child.kill(signal)
    else if (parentOf(id) === this.#child.pid) signalIfThere(id, signal)
  }

  /** Handles a frame; throws when it breaks the protocol. */
  #take(it: Frame): void {
    const { kind, payload } = it
    if (kind === FRAME.ready && this.#begun !== null) {
      this.#begun.resolve()
      this.#begun = null
      return
    }
    const current = this.#current
    if (kind >= FRAME.data) {
      this.#broker.take(current?.run ?? null, it)
      return
    }
    // Run numbers are never reused, so no frame of an earlier run is taken for an answer of this one.
    const number = payload.readUInt32BE(0)
    if (kind === FRAME.returned) {
      const { run } = answered(current, number)
      const read = this.#results.read(run.tenantId, payload.subarray(4))
      this.#finish(number, read instanceof Promise ? this.#readLater(read) : read)
      if (!(read instanceof Promise) && read.kind === 'died') this.kill()
      return
    }
    if (payload.length > 4 + REACTOR_ERROR_BYTES_MAX) throw new Error('A long text')
    const text = new TextDecoder('utf-8', { fatal: true }).decode(payload.subarray(4))
    if (kind === FRAME.over && number === this.#over?.number) {
      if (text.length > REACTOR_LEFTOVER_CHARS_MAX) throw new Error('A long leftover')
      this.#leave(text)
      return
    }
    const asked = answered(current, number)
    if (kind === FRAME.output) {
      asked.outputLeft -= outputCost(text.endsWith('\n') ? text : `${text}\n`)
      if (this.#output === null || asked.outputLeft < 0) throw new Error('Unexpected output')
      const { run } = asked
      asked.redact ??= redactor(handedTo(run))
      this.#output(run, this.#hide(asked.redact(text)))
      return
    }
    this.#finish(number, parseFailure(kind, payload.subarray(4), asked.run.code, this.#hide))
    if (kind === FRAME.crashed || kind === FRAME.neverLoaded) this.kill()
  }

  /** Ends the run, although its process may still be finishing, and its result be read. */
  #finish(number: number, outcome: ReactorOutcome | Promise<ReactorOutcome>): void {
    const { promise: leftover, resolve } = Promise.withResolvers<string>()
    this.#over = { number, leftover, resolve }
    this.#settle(outcome)
  }

  /** Kills the process if its result is malformed, or cannot be read because the runner is closed. */
  async #readLater(read: Promise<ReactorOutcome>): Promise<ReactorOutcome> {
    const outcome = await read.catch((): ReactorOutcome => ({ kind: 'died' }))
    if (outcome.kind === 'died') this.kill()
    return outcome
  }

  #leave(leftover: string): void {
    this.#leftover ??= leftover
    this.#over?.resolve(leftover)
  }

  #settle(outcome: ReactorOutcome | Promise<ReactorOutcome>): void {
    this.#broker.closeAll()
    this.#current?.settle(outcome)
    this.#current = null
  }

  #end(error: Error, signal: NodeJS.Signals | null = null): void {
    this.#gone = true
    this.#begun?.reject(error)
    const exhausted = signal === 'SIGABRT' || signal === 'SIGTRAP' || signal === 'SIGSEGV'
    const memory = exhausted && /heap|memory/i.test(this.#complaint)
    this.#settle({ kind: this.#killedFor ?? (memory ? 'out-of-memory' : 'died') })
    this.#leave(ENDED)
    this.#channel.close()
  }

  /** Keeps the start of stderr; when the guest writes more, closes the pipe. */
  #listenToErrors(errors: Readable): void {
    errors.on('error', ignore).on('data', (chunk: Buffer) => {
      this.#complaint += chunk.toString('latin1')
      if (this.#complaint.length > REACTOR_STDERR_BYTES_MAX) errors.destroy()
    })
  }
}

interface CurrentRun {
  readonly run: SandboxRun
  readonly number: number
  /** The outputCost() that a conforming guest may still cause. */
  outputLeft: number
  /** Created when first needed. */
  redact: ((line: string) => string) | null
  readonly settle: (outcome: ReactorOutcome | Promise<ReactorOutcome>) => void
}

/** A run that has its outcome, but whose process may still be finishing. */
interface OverRun {
  readonly number: number
  /** Empty when there is nothing. */
  readonly leftover: Promise<string>
  readonly resolve: (leftover: string) => void
}

const ENDED = 'the end of its process'
const PAGE_BYTES = 4096

/** Ignores outside configuration, prevents later changes of flags, bounds memory and returns freed memory. */
const RUNTIME_FLAGS = [
  '--openssl-config=/dev/null',
  '--disable-sigusr1',
  '--no-warnings',
  '--freeze-flags-after-init',
  '--single-threaded-gc',
  '--v8-pool-size=1',
  `--max-old-space-size=${REACTOR_HEAP_MIB}`,
]

/** Returns the current run; throws if the guest's answer is not for it. */
function answered(current: CurrentRun | null, number: number): CurrentRun {
  if (current === null || number !== current.number) throw new Error('An answer to nothing')
  return current
}

function parseFailure(
  kind: number,
  bytes: Buffer,
  code: string,
  hide: (text: string) => string,
): ReactorOutcome {
  const { error, position } = parseThrown(bytes, code, hide)
  if (kind === FRAME.noFunction || kind === FRAME.neverLoaded) {
    if (typeof error.message !== 'string') throw new Error('No reason')
    return { kind: 'no-function', message: error.message, position }
  }
  if (kind === FRAME.threw || kind === FRAME.crashed) return { kind: 'threw', error, position }
  throw new Error('A kind that there is not')
}

/** Returns all values the code was given, as JSON texts. */
function handedTo({ args, configuration, apiKey }: SandboxRun): string[] {
  return [args.reveal(), configuration.reveal(), JSON.stringify(apiKey?.reveal() ?? null)]
}

/** Decodes an exit code of 128 + signal, as used by shells and by programs that wait for another process. */
function signalOf(code: number | null): NodeJS.Signals | null {
  const found = Object.entries(constants.signals).find(([, it]) => it + 128 === code)
  return (found?.[0] as NodeJS.Signals | undefined) ?? null
}

/** Returns the parent's process id, or null once the process has ended. */
function parentOf(id: number): number | null {
  try {
    // The name in parentheses is chosen by the process itself, and may contain anything.
    return Number(readFileSync(`/proc/${id}/stat`, 'latin1').split(') ').at(-1)!.split(' ')[1])
  } catch {
    return null
  }
}

/** Ignores a process that ended in the meantime. */
function signalIfThere(id: number, signal: NodeJS.Signals): void {
  try {
    process.kill(id, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function asSaid(line: string): string {
  return line
}

function ignore(): void {}
