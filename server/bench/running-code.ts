/** Measures the cost of running a tenant's code over the runner's own pipe, and the overhead an invocation adds. */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { JailRunner } from '../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../src/adapters/jail/no-way.ts'
import { Sensitive } from '../src/base/sensitive.ts'
import type { ReactorOutcome, SandboxRun } from '../src/ports/reactor-runner.ts'
import { load, postBytes } from './load.ts'
import { SERVER_CORE } from './rows.ts'
import { startSubject } from './subjects.ts'
import { median } from './table.ts'

export interface RunningCode {
  /** Of a run in a process that is warm, microseconds. */
  readonly warmP50Us: number
  readonly warmP99Us: number
  /** Of a first run, in a process that waited for one, microseconds. */
  readonly prewarmedP50Us: number
  /** Longest delay between a deadline and the end of the code, in milliseconds. */
  readonly lateMs: number
  /** Private memory of a warm process, in bytes. */
  readonly privateBytes: number
  /** Processor time that all warm processes together took in IDLE_MS, ticks of 10 ms. */
  readonly idleTicks: number
  /** Processor time of the service's process, microseconds: of a run, an invocation, a token detokenized. */
  readonly runUs: number
  readonly invokeUs: number
  readonly detokenizeUs: number
}

const RUNS = 1000
const FIRST_RUNS = 20
const LATE_RUNS = 5
const DEADLINE_MS = 300
const IDLE_MS = 3000
/** For processes that were started to be ready. */
const SETTLE_MS = 700

export async function measureRunningCode(rounds: number): Promise<RunningCode> {
  const runner = await JailRunner.open({
    level: 'jail',
    packages: [],
    authorities: [],
    waysOut: NO_WAY,
  })
  if (runner.flaw !== null) throw new Error(runner.flaw)
  try {
    const warm = await measureWarm(runner, rounds)
    const late = await measureLate(runner)
    const first = await measureFirst(runner)
    await setTimeout(SETTLE_MS)
    const guests = guestsOf(process.pid).filter(isStopped)
    const before = ticksOf(guests)
    await setTimeout(IDLE_MS)
    const idle = { idleTicks: ticksOf(guests) - before, privateBytes: privateBytesOf(guests) }
    return { ...warm, ...late, ...first, ...idle, ...(await measureInvoking(rounds)) }
  } finally {
    await runner.close()
  }
}

type WarmFigures = Pick<RunningCode, 'warmP50Us' | 'warmP99Us' | 'runUs'>

async function measureWarm(runner: JailRunner, rounds: number): Promise<WarmFigures> {
  const it = runOf('warm', 'module.exports = (req) => ({ raw: req.args })')
  const p50: number[] = []
  const p99: number[] = []
  const cpu: number[] = []
  for (let round = -1; round < rounds; round++) {
    const times: number[] = []
    const before = process.cpuUsage()
    for (let run = 0; run < RUNS; run++) times.push(await timed(() => runner.run(it), 'returned'))
    const { user, system } = process.cpuUsage(before)
    // The first round is for the compilers.
    if (round < 0) continue
    times.sort((a, b) => a - b)
    p50.push(times[RUNS / 2]! * 1000)
    p99.push(times[RUNS * 0.99]! * 1000)
    cpu.push((user + system) / RUNS)
  }
  return { warmP50Us: median(p50), warmP99Us: median(p99), runUs: median(cpu) }
}

async function measureLate(runner: JailRunner): Promise<Pick<RunningCode, 'lateMs'>> {
  const code = 'module.exports = ({ args }) => { while (args.loop); }'
  const late: number[] = []
  for (let run = 0; run < LATE_RUNS; run++) {
    // Warm, so that there is nothing but the deadline to wait for.
    await runner.run(runOf('late', code))
    const looping = { ...runOf('late', code, '{"loop":true}'), timeoutMs: DEADLINE_MS }
    late.push((await timed(() => runner.run(looping), 'timed-out')) - DEADLINE_MS)
  }
  return { lateMs: Math.max(...late) }
}

async function measureFirst(runner: JailRunner): Promise<Pick<RunningCode, 'prewarmedP50Us'>> {
  const times: number[] = []
  for (let run = 0; run < FIRST_RUNS; run++) {
    await setTimeout(SETTLE_MS)
    const it = runOf(`first-${run}`, 'module.exports = (req) => ({ raw: req.args })')
    times.push((await timed(() => runner.run(it), 'returned')) * 1000)
  }
  return { prewarmedP50Us: median(times) }
}

/** Side by side, in one service: one token asked for, and one handed to code that returns it. */
async function measureInvoking(
  rounds: number,
): Promise<Pick<RunningCode, 'invokeUs' | 'detokenizeUs'>> {
  const subject = await startSubject('reacting', SERVER_CORE)
  const { reactors, token } = subject.reacting!
  const headers = { 'bt-api-key': subject.key }
  const args = { card: `{{ ${token} }}` }
  const rows = [
    { path: '/detokenize', body: JSON.stringify(args), cpu: [] as number[] },
    { path: `/reactors/${reactors.plain}/react`, body: JSON.stringify({ args }), cpu: [] },
  ]
  try {
    for (let round = -1; round < rounds; round++) {
      for (const { path, body, cpu } of rows) {
        const bytes = postBytes(path, body, headers)
        const times = { warmupMs: round < 0 ? 4000 : 500, measureMs: 2000 }
        const options = { ...times, port: subject.port, connections: CALLS, cpuUs: subject.cpuUs }
        const result = await load({ ...options, request: () => bytes, status: 200 })
        if (result.failures > 0) throw new Error(`${path}: ${result.failures} requests failed`)
        if (round >= 0) cpu.push(result.cpuUs / result.requests)
      }
    }
  } finally {
    await subject.stop()
  }
  const [detokenizeUs, invokeUs] = rows.map(({ cpu }) => median(cpu))
  return { detokenizeUs: detokenizeUs!, invokeUs: invokeUs! }
}

/** As few as share the commit of their audit events: code runs on the same core. */
const CALLS = 4

/** Milliseconds. Throws when it came out as anything but `kind`. */
async function timed(run: () => Promise<ReactorOutcome>, kind: ReactorOutcome['kind']) {
  const begun = performance.now()
  const outcome = await run()
  const took = performance.now() - begun
  if (outcome.kind !== kind) throw new Error(`It ${outcome.kind}, and was to be ${kind}`)
  return took
}

function runOf(reactorId: string, code: string, args = '{"card":{"number":"4242424242424242"}}') {
  return {
    tenantId: 'bench',
    reactorId,
    version: '1',
    code,
    args: new Sensitive(args),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs: 30_000,
  } satisfies SandboxRun
}

function guestsOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return children.split(' ').filter(Boolean).map(Number)
}

function isStopped(pid: number): boolean {
  return statOf(pid)[0] === 'T'
}

function ticksOf(pids: readonly number[]): number {
  return pids.reduce((sum, it) => sum + Number(statOf(it)[11]) + Number(statOf(it)[12]), 0)
}

function statOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
}

/** The median of them. */
function privateBytesOf(pids: readonly number[]): number {
  return median(
    pids.map((it) => {
      const [, resident, shared] = readFileSync(`/proc/${it}/statm`, 'utf8').split(' ').map(Number)
      return (resident! - shared!) * 4096
    }),
  )
}
