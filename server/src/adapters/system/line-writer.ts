/**
 * Writes lines to a descriptor in the background, many at a time.
 *
 * A line handed over is rendered when there is time, with others, and leaves after FLUSH_MS at the latest
 * (decision 0061). A reader that stalls costs lines, never memory without end, and never the event loop: what had
 * to be dropped is counted. close() waits until everything is written; what is left when the process exits without
 * it is written then.
 *
 * A logging library is not used: rendering a line is one JSON.stringify, and the one that came along
 * repeats a failing write at exit for ever, so that a full disk or a reader gone away would keep the
 * process from ending.
 */
import { write, writeSync } from 'node:fs'
import { KiB, MiB } from '../../base/limits.ts'
import { onIdle } from './idle-callback.ts'

export interface LineWriterOptions {
  /** What may wait for a slow reader; lines beyond it are dropped and counted. */
  readonly waitingCharsMax?: number
  /** When a line is written at the latest, milliseconds. */
  readonly flushMs?: number
}

export class LineWriter {
  readonly #descriptor: number
  readonly #waitingCharsMax: number
  readonly #flushMs: number
  readonly #reportDropped: (lines: number) => void
  #unrendered: (() => string)[] = []
  /** About how many characters they will be. */
  #unrenderedChars = 0
  #lines: string[] = []
  #chars = 0
  #writing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #waitsForQuiet = false
  #dropped = 0

  /** `reportDropped` is told how many lines were lost once there is room for a line that says so. */
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

  /** Takes what renders a line of about `chars`, which ends with a line break, and calls it once. Never throws. */
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

  /** Resolves when everything handed over is written, or cannot be. */
  async close(): Promise<void> {
    this.#start()
    await this.#writing
    process.off('exit', this.#writeRest)
  }

  #catchUp(): void {
    this.#render()
    if (this.#chars >= CHUNK_CHARS) this.#start()
  }

  /** Makes lines of what was handed over, or counts them as dropped; returns whether there is something to say. */
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
      while (this.#render()) {
        let rest = this.#take()
        while (rest.length > 0) rest = rest.subarray(writeSync(this.#descriptor, rest))
      }
    } catch {
      // The process ends; nobody is left to tell.
    }
  }
}

/** A line that cannot be rendered is lost as one is that cannot be written. */
function lineOf(render: () => string): string | null {
  try {
    return render()
  } catch {
    return null
  }
}

const WAITING_CHARS_MAX = 16 * MiB
const FLUSH_MS = 50
/** With so much they are rendered and written, idle or not. */
const CHUNK_CHARS = 64 * KiB

/** With so many they are rendered, too: what they are made of takes memory, and to render them time. */
const UNRENDERED_MAX = 128
