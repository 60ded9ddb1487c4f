import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Samples } from './fill.ts'
import type { Reacting } from './reacting.ts'

export type SubjectKind =
  | 'echo'
  | 'durable'
  | 'unstored'
  | 'unrecorded'
  | 'slow-sync'
  | 'slow-sync-single'
  | 'filled'
  | 'proxying'
  | 'destination'
  | 'closing-destination'
  | 'bare-proxy'
  | 'recording-proxy'
  | 'reacting'
  | 'on-postgres'
  | 'joining'

/** A server under measurement, in its own process on its own core. */
export interface BenchSubject {
  readonly kind: SubjectKind
  readonly folder: string
  readonly pid: number
  readonly port: number
  readonly key: string
  /** Of one that was filled. */
  readonly samples: Samples | undefined
  /** Of one that runs code. */
  readonly reacting: Reacting | undefined
  /** User and system time of the whole process so far, in microseconds; ticks of 10 ms. */
  readonly cpuUs: () => number
  /** Resident memory in bytes. */
  readonly residentBytes: () => number
  readonly stop: () => Promise<void>
}

/** As the launcher starts the service. */
const NODE_FLAGS = JSON.parse(
  readFileSync(new URL('../bin/node-flags.json', import.meta.url), 'utf8'),
) as string[]

export interface SubjectOptions {
  /** How many tokens a filled one has, and the port that a bare proxy forwards to. */
  readonly number?: number
  /** Where those on PostgreSQL store. */
  readonly database?: string
  /** The one that was there before, whose root key and callers this one has. */
  readonly beside?: BenchSubject
}

/** Starts a subject; where the machine can pin processes, it gets `core` for itself. */
export async function startSubject(
  kind: SubjectKind,
  core: number | null,
  { number = 0, database = '', beside }: SubjectOptions = {},
): Promise<BenchSubject> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-bench-'))
  if (beside !== undefined) copyFileSync(join(beside.folder, 'root.key'), join(folder, 'root.key'))
  const program = new URL('./subject.ts', import.meta.url).pathname
  const args = [program, kind, folder, String(number), database]
  const command = [process.execPath, ...NODE_FLAGS, ...args]
  const [file, ...rest] =
    core !== null && canPin() ? ['taskset', '-c', String(core), ...command] : command
  const child = spawn(file!, rest, { stdio: ['ignore', 'pipe', 'inherit'], env: environment() })
  const { port, key, samples, reacting } = await firstLine(child)
  const pid = child.pid!
  return {
    kind,
    folder,
    pid,
    port,
    key: beside?.key ?? key,
    samples,
    reacting,
    cpuUs: () => cpuUsOf(pid),
    residentBytes: () => {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024
    },
    stop: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function cpuUsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

type SubjectReport = Pick<BenchSubject, 'port' | 'key' | 'samples' | 'reacting'>

async function firstLine(child: ChildProcess): Promise<SubjectReport> {
  for await (const line of createInterface({ input: child.stdout! })) {
    return JSON.parse(line) as SubjectReport
  }
  throw new Error('A subject ended before it listened')
}

/** Moves a process with all its threads to these cores, as `taskset` names them; what it starts from then on, too. */
export function place(pid: number, cores: string): void {
  if (canPin()) execFileSync('taskset', ['-a', '-p', '-c', cores, `${pid}`], { stdio: 'ignore' })
}

export const ALL_CORES = `0-${cpus().length - 1}`

/**
 * Calls `work` while this process, from which the load comes, stays off `core`: left to itself it is now and then put there,
 * and what it leaves in the caches is then paid for by the server.
 */
export async function off<Result>(core: number, work: () => Promise<Result>): Promise<Result> {
  const others = [...cpus().keys()].filter((it) => it !== core)
  if (others.length > 0) place(process.pid, others.join(','))
  try {
    return await work()
  } finally {
    place(process.pid, ALL_CORES)
  }
}

let pins: boolean | undefined

export function canPin(): boolean {
  if (pins === undefined) {
    try {
      execFileSync('taskset', ['-p', String(process.pid)], { stdio: 'ignore' })
      pins = true
    } catch {
      pins = false
    }
  }
  return pins
}

/** Compiled once and kept, as the launcher does in a checkout. */
function environment(): NodeJS.ProcessEnv {
  const cache = new URL('../../node_modules/.cache/symbolon', import.meta.url).pathname
  return { MALLOC_ARENA_MAX: '2', NODE_COMPILE_CACHE: cache, ...process.env }
}
