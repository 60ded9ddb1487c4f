/**
 * Writes lines to a descriptor in the background, many at a time.
 *
 * Lines are rendered in idle time, several together, and written after FLUSH_MS at the latest
 * (decision 0061). A stalled reader costs lines, but never unbounded memory, and never blocks the
 * event loop; dropped lines are counted. close() waits until everything is written; if the process
 * exits without it, the rest is written at exit.
 *
 * There is no logging library: rendering a line is one JSON.stringify, and the library tried
 * retries a failing write at exit forever, so that a full disk or a closed reader would keep the
 * process from ending.
 */
import { write, writeSync } from 'node:fs'
import { KiB, MiB } from '../../base/limits.ts'
import { onIdle } from './idle-callback.ts'

export interface LineWriterOptions {
  /** Characters that may wait for a slow reader; lines beyond that are dropped and counted. */
  readonly waitingCharsMax?: number
  /** Milliseconds after which a line is written at the latest. */
  readonly flushMs?: number
}

export class LineWriter {
  readonly #descriptor: number
  readonly #waitingCharsMax: number
  readonly #flushMs: number
  readonly #reportDropped: (lines: number) => void
  #unrendered: (() => string)[] = []
  /** The expected number of characters of the lines not rendered yet. */
  #unrenderedChars = 0
  #lines: string[] = []
  #chars = 0
  #writing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #waitsForQuiet = false
  #dropped = 0

  /** `reportDropped` gets the number of lost lines once there is room for a line that reports it. */
  constructor(
    descriptor: number,
    { waitingCharsMax = WAITING_CHARS_MAX, flushMs = FLUSH_MS }: LineWriterOptions,
    reportDropped: (lines: number) => void,
  ) {
    this.#descriptor = descriptor
    this.#waitingCharsMax = waitingCharsMax
    this.#flushMs = flushMs
    this.#reportDropped = reportDropped
    process.on('exit', this.#writeRest)
  }

  /**
   * Takes a function that renders a line of about `chars` characters, including its line break, and
   * calls it once. Never throws.
   */
  write(render: () => string, chars: number): void {
    this.#unrendered.push(render)
    this.#unrenderedChars += chars
    this.#timer ??= setTimeout(() => this.#start(), this.#flushMs).unref()
    if (this.#unrendered.length >= UNRENDERED_MAX || this.#unrenderedChars >= CHUNK_CHARS) {
      this.#catchUp()
    } else if (!this.#waitsForQuiet) {
      this.#waitsForQuiet = true
      onIdle(() => {
        this.#waitsForQuiet = false
        this.#catchUp()
      })
    }
  }

  /** Resolves when every line so far is written, or cannot be. */
  async close(): Promise<void> {
    this.#start()
    await this.#writing
    process.off('exit', this.#writeRest)
  }

  #catchUp(): void {
    this.#render()
    if (this.#chars >= CHUNK_CHARS) this.#start()
  }

  /** Renders the lines taken, or counts them as dropped; returns whether there is anything to write. */
  #render(): boolean {
    const renders = this.#unrendered
    this.#unrendered = []
    this.#unrenderedChars = 0
    for (const render of renders) {
      const line = lineOf(render)
      if (line === null || this.#chars + line.length > this.#waitingCharsMax) {
        this.#dropped += 1
        continue
      }
      this.#lines.push(line)
      this.#chars += line.length
    }
    return this.#lines.length > 0 || this.#dropped > 0
  }

  #start(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null
    })
  }

  async #writeAll(): Promise<void> {
    while (this.#render()) {
      const lines = this.#lines.length
      try {
        await this.#writeWhole(this.#take())
      } catch {
        // A log that cannot be written has nowhere to report it, and is no reason to stop serving:
        // the events that must be recorded are in the store's audit log.
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
        // The reader of a non-blocking pipe is slow: wait a moment, then retry.
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
      while (this.#render()) {
        let rest = this.#take()
        while (rest.length > 0) rest = rest.subarray(writeSync(this.#descriptor, rest))
      }
    } catch {
      // The process is exiting; there is nowhere to report it.
    }
  }
}

/** A line that cannot be rendered is lost, like one that cannot be written. */
function lineOf(render: () => string): string | null {
  try {
    return render()
  } catch {
    return null
  }
}

const WAITING_CHARS_MAX = 16 * MiB
const FLUSH_MS = 50
/** Lines are rendered and written at this size, idle or not. */
const CHUNK_CHARS = 64 * KiB

/** Lines are rendered at this number too, since their fields take memory, and rendering takes time. */
const UNRENDERED_MAX = 128
