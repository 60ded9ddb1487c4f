/** The `symbolon` program as an operator runs it: in a separate process and folder, with real sockets. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { bareEnvironment } from './environment.ts'

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url))

/** Flags and variables without which the program would start itself again with them, which costs as much as a short command. */
export const NODE_FLAGS = JSON.parse(
  readFileSync(new URL('../../bin/node-flags.json', import.meta.url), 'utf8'),
) as string[]
export const NODE_VARIABLES = {
  MALLOC_ARENA_MAX: '2',
  NODE_COMPILE_CACHE: fileURLToPath(
    new URL('../../../node_modules/.cache/symbolon', import.meta.url),
  ),
}

export interface Finished {
  readonly status: number | null
  readonly out: string
  readonly err: string
}

export interface RunningVault {
  readonly url: string
  readonly pid: number
  /** Its output until it was ready. */
  readonly greeting: string
  /** Returns all output so far. */
  readonly printed: () => string
  /** Sends the signal and resolves once the process is gone. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<Finished>
}

/** Creates a folder that is removed when the test ends. */
export function temporaryFolder(test: { after: (fn: () => void) => void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-test-'))
  test.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Returns the paths of the files in a folder; other items, such as sockets, cannot be read. */
export function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.filter((it) => it.isFile()).map((it) => join(folder, it.name))
}

/**
 * Runs a command to its end as a program; `cwd` matters if no data folder is given. `checkout` as for startVault(). Takes ten
 * times as long as runSymbolon(), so it is for what depends on the process.
 */
export async function runProgram(
  args: readonly string[],
  variables: Record<string, string> = {},
  cwd?: string,
  checkout?: string,
): Promise<Finished> {
  return await finished(start(args, variables, cwd, checkout))
}

/**
 * Runs a command to its end, all of it but the start of the program: in a thread that runs one after another. `serve` must fail,
 * since a thread gets no signal to stop it.
 */
export async function runSymbolon(
  args: readonly string[],
  variables: Record<string, string> = {},
): Promise<Finished> {
  const thread = IDLE.pop() ?? new Worker(COMMAND_THREAD, { env: {} })
  thread.ref()
  const ended = once(thread, 'message')
  thread.postMessage({ args, variables: { ...bareEnvironment(), ...SETTINGS, ...variables } })
  const [finished] = (await ended) as [Finished]
  thread.unref()
  IDLE.push(thread)
  return finished
}

const COMMAND_THREAD = new URL('command-thread.ts', import.meta.url)
const IDLE: Worker[] = []

/** Port 0, so that concurrent vaults never want the same port. */
const SETTINGS = { SYMBOLON_PORT: '0' }

/** The settings of a server: unless another level is named, reactors have no walls, which start slowest. */
export const SERVE_SETTINGS = { ...SETTINGS, SYMBOLON_REACTOR_LEVEL: 'portable' }

/**
 * Starts `serve` on a free port and waits for its ready line; throws its output if it ends first. `checkout` is the folder of
 * another version, with its packages installed.
 *
 * Takes several times as long as startHostedVault(), so it is for what depends on the process. startService() has the default level
 * of reactors.
 */
export async function startVault(
  folder: string,
  variables: Record<string, string> = {},
  checkout?: string,
): Promise<RunningVault> {
  const own = { SYMBOLON_DATA_DIR: folder, ...SERVE_SETTINGS }
  const child = start(['serve'], { ...own, ...variables }, undefined, checkout)
  const end = finished(child)
  let printed = ''
  const { promise: ready, resolve } = Promise.withResolvers<string>()
  child.stdout!.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
    firstReady(printed, resolve)
  })
  const url = await Promise.race([
    ready,
    end.then(({ err }) => {
      throw new Error(`The server ended before it was ready: ${err}`)
    }),
  ])
  return {
    url,
    pid: child.pid!,
    greeting: printed,
    printed: () => printed,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal)
      return await end
    },
  }
}

/** Calls `onReady` with the address of the server, if it has printed that it is ready. */
export function firstReady(printed: string, onReady: (url: string) => void): void {
  const url = /is ready at (http:\S+)/.exec(printed)?.[1]
  if (url !== undefined) onReady(url)
}

function start(
  args: readonly string[],
  variables: Record<string, string>,
  cwd?: string,
  checkout = CHECKOUT,
): ChildProcess {
  const program = join(checkout, 'server/bin/symbolon.cjs')
  const inherited = bareEnvironment()
  // It would take precedence over the file.
  if ('FAKETIME_TIMESTAMP_FILE' in variables) delete inherited['FAKETIME']
  return spawn(process.execPath, [...NODE_FLAGS, program, ...args], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...inherited, ...NODE_VARIABLES, ...SETTINGS, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function finished(child: ChildProcess): Promise<Finished> {
  let out = ''
  let err = ''
  child.stdout!.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr!.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, out, err }
}
