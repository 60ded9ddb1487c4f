import { Console } from 'node:console'
import { Writable } from 'node:stream'

/**
 * Sends the code's console output to `sendLine`, line by line, up to `bytesMax` bytes until the returned function is
 * called, which resets the limit. Output that bypasses the console is lost. A line that does not fit is dropped as a
 * whole, because a redactor cannot recognize part of a value.
 */
export function captureOutput(bytesMax: number, sendLine: (line: string) => void): () => void {
  let left = bytesMax
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const fits = chunk.length <= left
      left = fits ? left - chunk.length : 0
      if (fits && chunk.length > 0) sendLine(chunk.toString())
      done()
    },
  })
  globalThis.console = new Console({ stdout: stream, stderr: stream })
  return () => {
    left = bytesMax
  }
}
