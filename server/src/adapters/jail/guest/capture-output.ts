import { Console } from 'node:console'
import { Writable } from 'node:stream'
import { outputCost } from './frames.ts'
import { stateOfConsole, stateOfStream, type RestorableState } from './output-state.ts'
import { WholeLines } from './whole-lines.ts'

/** The output of runs: the code's console, `process.stdout` and `process.stderr`. */
export interface CapturedOutput {
  /** Accepts the present state of consoles and streams: each run begins with it. */
  accept(): void
  /** Starts a run, with the whole limit and no state of another run. */
  begin(): void
  /** Sends what a run has written of a line that it did not end. Drops all that is written from now on. */
  end(): void
}

/**
 * Sends the code's output to `sendLines`, in whole lines, up to an outputCost() of `costMax` per run. A line that does not
 * fit is dropped as a whole, because a redactor cannot recognize part of a value.
 *
 * Nothing that one run has written may reach the lines of another, which are redacted with other values.
 */
export function captureOutput(costMax: number, sendLines: (lines: string) => void): CapturedOutput {
  /** What the run may still write; 0 while there is none. */
  let left = 0
  const send = (text: string | null): void => {
    left = text === null ? 0 : left - outputCost(text)
    if (text !== null) sendLines(text)
  }
  const [out, errors] = [new WholeLines(send, () => left), new WholeLines(send, () => left)]
  const [stdout, stderr] = [streamTo(out, 1), streamTo(errors, 2)]
  // The console of `require('console')` writes to these, too, because it has not written yet.
  const own = new Console({ stdout: stdout.stream, stderr: stderr.stream })
  const consoles = [globalThis.console, own]
  for (const [name, { stream }] of Object.entries({ stdout, stderr })) {
    Object.defineProperty(process, name, { value: stream, enumerable: true, configurable: true })
  }
  globalThis.console = own
  const states = [stdout.state, stderr.state, ...consoles.map(stateOfConsole)]
  const discard = (): void => {
    left = 0
    out.discard()
    errors.discard()
  }
  return {
    accept() {
      for (const it of states) it.accept()
    },
    begin() {
      discard()
      for (const it of states) it.restore()
      left = costMax
    },
    end() {
      try {
        out.end()
        errors.end()
      } finally {
        discard()
      }
    },
  }
}

/** Like the streams of a process without a terminal: always open, whatever the code does. */
function streamTo(
  lines: WholeLines,
  fd: number,
): { readonly stream: Writable; readonly state: RestorableState } {
  const options = {
    write(chunk: Buffer, _encoding: unknown, done: () => void) {
      lines.write(chunk)
      done()
    },
  }
  const stream = new Writable(options)
  const state = stateOfStream(stream, options)
  const end = (...args: unknown[]): Writable => {
    const [chunk] = args
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) stream.write(chunk)
    const done = args.findLast((it) => typeof it === 'function') as (() => void) | undefined
    if (done !== undefined) process.nextTick(done)
    return stream
  }
  return { stream: Object.assign(stream, { fd, end, destroy: () => stream }), state }
}
