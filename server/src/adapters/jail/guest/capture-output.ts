import { Console } from 'node:console'
import { Writable } from 'node:stream'

/** The output of runs: the code's console, `process.stdout` and `process.stderr`. */
export interface CapturedOutput {
  /** Starts a run, with the whole limit and no state of another run. */
  begin(): void
  /** Sends the last line of a run even if the run did not end it. */
  end(): void
}

/**
 * Sends the code's output to `sendLines`, in whole lines, up to `bytesMax` bytes per run. A line that does not fit is
 * dropped as a whole, because a redactor cannot recognize part of a value.
 */
export function captureOutput(
  bytesMax: number,
  sendLines: (lines: string) => void,
): CapturedOutput {
  let left = bytesMax
  const send = (lines: Buffer | null): void => {
    left = lines === null ? 0 : left - lines.length
    if (lines !== null) sendLines(lines.toString())
  }
  const lines = [new Lines(send, () => left), new Lines(send, () => left)] as const
  const [stdout, stderr] = [streamTo(lines[0], 1), streamTo(lines[1], 2)]
  // Node's own console resolves the streams at its first write, so it writes to these, too.
  const consoles = [globalThis.console, new Console({ stdout, stderr })]
  for (const [name, value] of Object.entries({ stdout, stderr })) {
    Object.defineProperty(process, name, { value, enumerable: true, configurable: true })
  }
  globalThis.console = consoles[1]!
  const state = consoles.flatMap(mapsOf)
  return {
    begin: () => {
      left = bytesMax
      for (const it of state) it.clear()
    },
    end: () => {
      lines[0].end()
      lines[1].end()
    },
  }
}

/** Joins chunks into whole lines. Sends lines written together at once, and null if they do not fit. */
class Lines {
  readonly #send: (lines: Buffer | null) => void
  readonly #bytesMax: () => number
  #begun: Buffer[] = []
  #bytes = 0

  constructor(send: (lines: Buffer | null) => void, bytesMax: () => number) {
    this.#send = send
    this.#bytesMax = bytesMax
  }

  write(chunk: Buffer): void {
    const end = chunk.lastIndexOf(LINE_FEED) + 1
    if (end > 0) {
      this.#keep(chunk.subarray(0, end))
      this.#flush()
    }
    if (end < chunk.length) this.#keep(Buffer.from(chunk.subarray(end)))
  }

  end(): void {
    if (this.#bytes === 0) return
    this.#keep(Buffer.from('\n'))
    this.#flush()
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length
    // Only the length of a line that is too long is needed.
    if (this.#bytes <= this.#bytesMax()) this.#begun.push(piece)
  }

  #flush(): void {
    const fits = this.#bytes <= this.#bytesMax()
    const line = this.#begun.length === 1 ? this.#begun[0]! : Buffer.concat(this.#begun)
    this.#begun = []
    this.#bytes = 0
    this.#send(fits ? line : null)
  }
}

const LINE_FEED = 10

/** Like the standard streams of a process: the code cannot close it. */
function streamTo(lines: Lines, fd: number): Writable {
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.write(chunk)
      done()
    },
  })
  const end = (...args: unknown[]): Writable => {
    const [chunk] = args
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) stream.write(chunk)
    const done = args.findLast((it) => typeof it === 'function') as (() => void) | undefined
    if (done !== undefined) process.nextTick(done)
    return stream
  }
  return Object.assign(stream, { fd, end, destroy: () => stream })
}

/** Returns the labels of `console.count()` and `console.time()`. */
function mapsOf(console: Console): Map<unknown, unknown>[] {
  return Reflect.ownKeys(console)
    .map((it) => Reflect.get(console, it) as unknown)
    .filter((it) => it instanceof Map)
}
