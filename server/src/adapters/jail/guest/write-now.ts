import { writeSync } from 'node:fs'

/**
 * Writes all of `bytes` before it returns, even if the descriptor is non-blocking and its reader is slow. Returns false if
 * nothing could be written.
 */
export function writeNow(descriptor: number, bytes: Buffer): boolean {
  let written = 0
  while (written < bytes.length) {
    try {
      written += writeSync(descriptor, bytes, written)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'EAGAIN') return written > 0
      wait(PAUSE, 0, 0, PAUSE_MS)
    }
  }
  return true
}

const { wait } = Atomics
/** Never notified: a wait on it always lasts until its timeout. */
const PAUSE = new Int32Array(new SharedArrayBuffer(4))
const PAUSE_MS = 1
