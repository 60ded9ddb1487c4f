/**
 * Writes lines to a descriptor in the background, many at a time.
 *
 * A line handed over leaves after FLUSH_MS at the latest. A reader that stalls costs lines, never
 * memory without end, and never the event loop: what had to be dropped is counted. close() waits
 * until everything is written; what is left when the process exits without it is written then.
 *
 * A logging library is not used: rendering a line is one JSON.stringify, and the one that came along
 * repeats a failing write at exit for ever, so that a full disk or a reader gone away would keep the
 * process from ending.
 */
import { write, writeSync } from 'node:fs'
import { KiB } from '../../base/limits.ts'

export class LineWriter {
  readonly #descriptor: number
  readonly #waitingCharsMax: number
  readonly #reportDropped: (lines: number) => void
  #lines: string[] = []
  #chars = 0
  #writing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #dropped = 0

  /** `reportDropped` is told how many lines were lost once there is room for a line that says so. */
  constructor(descriptor: number, waitingCharsMax: number, reportDropped: (lines: number) => void) {
    this.#descriptor = descriptor
    this.#waitingCharsMax = waitingCharsMax
    this.#reportDropped = reportDropped
    process.on('exit', this.#writeRest)
  }

  /** Takes `line`, which ends with a line break, or counts it as dropped. Never throws. */
  write(line: string): void {
    if (this.#chars + line.length > this.#waitingCharsMax) {
      this.#dropped += 1
      return
    }
    this.#lines.push(line)
    this.#chars += line.length
    if (this.#chars >= CHUNK_CHARS) this.#start()
    else this.#timer ??= setTimeout(() => this.#start(), FLUSH_MS).unref()
  }

  /** Resolves when everything handed over is written, or cannot be. */
  async close(): Promise<void> {
    this.#start()
    await this.#writing
    process.off('exit', this.#writeRest)
  }

  #start(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null
    })
  }

  async #writeAll(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines.length
      try {
        await this.#writeWhole(this.#take())
      } catch {
        // A log that cannot be written has nowhere to say so, and is no reason to stop serving: what
        // may not happen unrecorded is recorded in the store.
        this.#dropped += lines
        return
      }
    }
  }

  async #writeWhole(chunk: Buffer): Promise<void> {
    let rest = chunk
    while (rest.length > 0) rest = rest.subarray(await this.#writeSome(rest))
  }

  #writeSome(chunk: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      write(this.#descriptor, chunk, (error, written) => {
        if (error === null) resolve(written)
        // The reader of a non-blocking pipe is behind: give it a moment, then offer it again.
        else if (error.code === 'EAGAIN') setTimeout(() => resolve(0), FLUSH_MS)
        else reject(error)
      })
    })
  }

  #take(): Buffer {
    const chunk = Buffer.from(this.#lines.join(''))
    this.#lines = []
    this.#chars = 0
    const dropped = this.#dropped
    this.#dropped = 0
    if (dropped > 0) this.#reportDropped(dropped)
    return chunk
  }

  readonly #writeRest = (): void => {
    try {
      while (this.#lines.length > 0) {
        let rest = this.#take()
        while (rest.length > 0) rest = rest.subarray(writeSync(this.#descriptor, rest))
      }
    } catch {
      // The process ends; nobody is left to tell.
    }
  }
}

const FLUSH_MS = 50
const CHUNK_CHARS = 64 * KiB
