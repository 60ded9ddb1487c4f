import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Ready, CrashServerOptions } from './server.ts'

const ENTRY = path.join(import.meta.dirname, 'server.ts')

/** A server process, and the only one with the means to end it. */
export class Victim {
  readonly #child: ChildProcess
  /** Resolves when the process is gone, with what it died of. */
  readonly gone: Promise<string>
  #running = true

  constructor(options: CrashServerOptions, codeCache: string) {
    this.#child = spawn(process.execPath, [ENTRY, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', logOf(options)],
      // Compiling the source anew took half of every start. The tests have a cache of their own.
      env: { NODE_COMPILE_CACHE: codeCache, ...process.env },
    })
    this.gone = once(this.#child, 'exit').then(([status, signal]) => {
      this.#running = false
      return String(signal ?? `status ${status}`)
    })
  }

  get running(): boolean {
    return this.#running
  }

  /** Resolves when it listens; rejects when it dies before. */
  async ready(): Promise<Ready> {
    for await (const line of createInterface(this.#child.stdout!)) return JSON.parse(line) as Ready
    throw new Error(`The server ended before it was ready: ${await this.gone}`)
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.gone
  }

  /** Ends it the way an operator does; returns what it died of. */
  async stop(): Promise<string> {
    this.#child.kill('SIGTERM')
    return await this.gone
  }
}

/** A server without its database logs that for every request: its log goes to a file, for investigating a flaw. */
function logOf({ folder, database }: CrashServerOptions): 'inherit' | number {
  return database === undefined ? 'inherit' : openSync(path.join(folder, 'server.log'), 'a', 0o600)
}
