import { Console } from 'node:console'
import { Writable } from 'node:stream'

/**
 * Has what the code says on its console go to `tell`, a line at a time, and no more than `bytesMax` of it until the
 * function that is returned is called; what it writes past the console is nobody's.
 */
export function captureOutput(bytesMax: number, tell: (line: string) => void): () => void {
  let left = bytesMax
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const piece = chunk.subarray(0, left)
      left -= piece.length
      if (piece.length > 0) tell(piece.toString())
      done()
    },
  })
  globalThis.console = new Console({ stdout: stream, stderr: stream })
  return () => {
    left = bytesMax
  }
}
