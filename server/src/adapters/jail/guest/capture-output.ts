import { Console } from 'node:console'
import { Writable } from 'node:stream'

/**
 * Has what the code says on its console go to `tell`, a line at a time, and no more than `bytesMax` of it until the
 * function that is returned is called; what it writes past the console is nobody's. What does not fit is left out
 * as a whole: whoever takes values out of it does not know a part of one again.
 */
export function captureOutput(bytesMax: number, tell: (line: string) => void): () => void {
  let left = bytesMax
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const fits = chunk.length <= left
      left = fits ? left - chunk.length : 0
      if (fits && chunk.length > 0) tell(chunk.toString())
      done()
    },
  })
  globalThis.console = new Console({ stdout: stream, stderr: stream })
  return () => {
    left = bytesMax
  }
}
