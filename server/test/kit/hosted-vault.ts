/**
 * `symbolon serve` in a process that serves one vault after another. Loading the program takes most of a start, and a host does it
 * once. For tests of what a vault holds and answers between starts; startVault() is for what depends on the process.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { bareEnvironment } from './environment.ts'
import { END_OF_OUTPUT } from './end-of-output.ts'
import {
  firstReady,
  NODE_FLAGS,
  NODE_VARIABLES,
  SERVE_SETTINGS,
  type Finished,
  type RunningVault,
} from './running-vault.ts'

/** Hosts that serve no vault now. */
const IDLE: ServerHost[] = []

/** Like startVault(): in a host of its own for as long as it runs. Settings of the service are all that `variables` may have. */
export async function startHostedVault(
  folder: string,
  variables: Record<string, string> = {},
): Promise<RunningVault> {
  const foreign = Object.keys(variables).find((it) => !it.startsWith('SYMBOLON_'))
  if (foreign !== undefined) throw new Error(`${foreign} is for a whole process: use startVault()`)
  const host = IDLE.pop() ?? new ServerHost()
  return await host.serve({ ...SERVE_SETTINGS, SYMBOLON_DATA_DIR: folder, ...variables })
}

class ServerHost {
  readonly #child: ChildProcess
  #output = { stdout: '', stderr: '' }
  #onOutput = (): void => {}

  constructor() {
    this.#child = spawn(process.execPath, [...NODE_FLAGS, HOST], {
      env: { ...bareEnvironment(), ...NODE_VARIABLES },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#child.once('exit', () => {
      if (IDLE.includes(this)) IDLE.splice(IDLE.indexOf(this), 1)
    })
    for (const name of ['stdout', 'stderr'] as const) {
      this.#child[name]!.on('data', (chunk: Buffer) => {
        this.#output[name] += chunk.toString()
        this.#onOutput()
      })
    }
  }

  async serve(settings: Readonly<Record<string, string>>): Promise<RunningVault> {
    const child = this.#child
    this.#hold(true)
    const output = { stdout: '', stderr: '' }
    this.#output = output
    let running = true
    const ready = Promise.withResolvers<string>()
    const ended = Promise.withResolvers<Finished>()
    const died = (status: number | null): void => {
      ended.resolve({ status, out: output.stdout, err: output.stderr })
    }
    child.once('close', died)
    this.#onOutput = () => {
      firstReady(output.stdout, ready.resolve)
      const finished = finishedIn(output)
      if (finished === null) return
      this.#onOutput = () => {}
      child.off('close', died)
      this.#hold(false)
      IDLE.push(this)
      running = false
      ended.resolve(finished)
    }
    child.send({ ...bareEnvironment(), ...NODE_VARIABLES, ...settings })
    const failed = ended.promise.then(({ err }) => {
      throw new Error(`The server ended before it was ready: ${err}`)
    })
    const url = await Promise.race([ready.promise, failed])
    return {
      url,
      pid: child.pid!,
      greeting: output.stdout,
      printed: () => beforeEnd(output.stdout),
      stop: async (signal = 'SIGTERM') => {
        if (running) child.kill(signal)
        return await ended.promise
      },
    }
  }

  /** Whether this process stays for the host, which ends with it. */
  #hold(held: boolean): void {
    const { stdout, stderr, channel } = this.#child
    for (const it of [this.#child, channel!, stdout as Socket, stderr as Socket]) {
      if (held) it.ref()
      else it.unref()
    }
  }
}

const HOST = fileURLToPath(new URL('server-host.ts', import.meta.url))

/** Returns null until both streams have ended. */
function finishedIn({
  stdout,
  stderr,
}: Readonly<Record<'stdout' | 'stderr', string>>): Finished | null {
  const [, status] = END.exec(stdout) ?? []
  if (status === undefined || !END.test(stderr)) return null
  return { status: Number(status), out: beforeEnd(stdout), err: beforeEnd(stderr) }
}

function beforeEnd(text: string): string {
  return text.replace(END, '')
}

const END = new RegExp(`${END_OF_OUTPUT}(\\d+)\n$`)
