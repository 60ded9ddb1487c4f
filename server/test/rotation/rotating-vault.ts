import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { News, RotatingServerOptions } from './server.ts'

/** A server whose keys are rotated, as a process that can be killed. */
export class RotatingVault {
  readonly #child: ChildProcess
  readonly #first = Promise.withResolvers<News>()
  readonly gone: Promise<unknown>
  /** Once it is ready. */
  url = ''
  /** Ciphertexts left to reseal, by its last report; infinite before it began. */
  left = Infinity
  /** How many rotations it is at. */
  running = 0
  killed = false

  constructor(options: RotatingServerOptions) {
    const entry = path.join(import.meta.dirname, 'server.ts')
    this.#child = spawn(process.execPath, [entry, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.gone = once(this.#child, 'exit').then(() => {
      this.#first.reject(new Error('The server ended before it was ready'))
    })
    createInterface(this.#child.stdout!).on('line', (line) => this.#hear(JSON.parse(line) as News))
  }

  /** Resolves with what it said first. */
  async ready(): Promise<News> {
    return await this.#first.promise
  }

  rotate(): void {
    this.running += 1
    this.#child.kill('SIGUSR2')
  }

  async kill(): Promise<void> {
    this.killed = true
    this.#child.kill('SIGKILL')
    await this.gone
  }

  #hear(news: News): void {
    if (news.port !== undefined) {
      this.url = `http://127.0.0.1:${news.port}`
      this.running += news.unfinished!
      this.#first.resolve(news)
    }
    if (news.left !== undefined) this.left = news.left
    if (news.rotated === true) this.running -= 1
  }
}
