/**
 * A probe for tests, configured by its own URL: `?point=staged&at=3&do=kill` kills the process when the write path reaches
 * that point for the third time; `stall` blocks there for half a second; a number fails there, as SQLite does with that
 * result code.
 */
import type { ProbePoint } from '../../src/adapters/storage/sqlite/run-batch.ts'

const { searchParams } = new URL(import.meta.url)
const action = searchParams.get('do')
let left = Number(searchParams.get('at'))

export default function probe(point: ProbePoint): void {
  if (point !== searchParams.get('point') || --left !== 0) return
  if (action === 'kill') process.kill(process.pid, 'SIGKILL')
  if (action === 'stall') {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
    return
  }
  throw Object.assign(new Error('injected'), { errcode: Number(action) })
}
