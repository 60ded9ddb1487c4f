/**
 * `npm run test:frames --workspace server -- --sequences 10000 --seed 1`: guests that say anything to the service. Throws when one
 * causes a fault, or leaves a connection, a timer or memory.
 */
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { MiB } from '../../src/base/limits.ts'
import { SEED } from '../kit/seed.ts'
import { runSequences } from './run.ts'

const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(SEED) },
  },
})
const [count, seed] = [Number(values.sequences), Number(values.seed)]
const HEAP_GROWTH_MAX = 4 * MiB
const collect = globalThis.gc ?? assert.fail('run it with --expose-gc')

// Warm up, with sequences that do not come again.
await runSequences(Math.min(count, 500), seed + 1_000_000)
const before = memoryNow()
const begun = performance.now()
const outcomes = await runSequences(count, seed)
const seconds = ((performance.now() - begun) / 1000).toFixed(0)
const after = memoryNow()
const timers = process.getActiveResourcesInfo().filter((it) => it === 'Timeout')
process.stdout.write(
  `${count} sequences, seed ${seed}, ${seconds} s: ${JSON.stringify(outcomes)}; memory ${mib(before)} MiB before, ${mib(after)} after\n`,
)
assert.deepEqual(timers, [], 'timers that are left')
assert.ok(after - before < HEAP_GROWTH_MAX, `memory has grown by ${after - before} bytes`)

function memoryNow(): number {
  for (let n = 0; n < 4; n++) collect()
  const { heapUsed, external, arrayBuffers } = process.memoryUsage()
  return heapUsed + external + arrayBuffers
}

function mib(bytes: number): string {
  return (bytes / MiB).toFixed(1)
}
