/**
 * `npm run test:destinations --workspace server -- --calls 10000`: calls destinations that misbehave, each in turn,
 * by both clients. Throws when a call ends in an unexpected way, and when the calls leak a socket,
 * a timer or memory.
 */
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { MiB } from '../../src/base/limits.ts'
import { KINDS } from './kinds.ts'
import { CARRIERS, openDestinations } from './run.ts'

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '10000' },
    'at-once': { type: 'string', default: '100' },
    timeout: { type: 'string', default: '500' },
  },
})
const [calls, concurrency] = [Number(values.calls), Number(values['at-once'])]
const carriers = Object.keys(CARRIERS) as (keyof typeof CARRIERS)[]
const HEAP_GROWTH_MAX = 2 * MiB
const collect = globalThis.gc ?? assert.fail('run it with --expose-gc')

const handles = handlesNow()
// Warm up: the first calls create the parsers, pools and certificates that are made once.
await round(Math.min(calls, 4 * KINDS.length * carriers.length))
const before = heapNow()
await round(calls)
const after = heapNow()

const left = await handlesAtRest()
process.stdout.write(
  `${calls} calls, heap ${(before / MiB).toFixed(1)} MiB before and ${(after / MiB).toFixed(1)} MiB after\n`,
)
assert.deepEqual(left, handles, 'sockets and timers that are left')
assert.ok(after - before < HEAP_GROWTH_MAX, `the heap has grown by ${after - before} bytes`)

async function round(count: number): Promise<void> {
  const destinations = await openDestinations(Number(values.timeout))
  let next = 0
  const work = async (): Promise<void> => {
    for (let it = next++; it < count; it = next++) {
      const kind = KINDS[it % KINDS.length]!
      await destinations.call(kind, carriers[Math.floor(it / KINDS.length) % carriers.length]!)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  await destinations.close()
}

/** Waits up to a second for closed handles to disappear, and returns those that remain. */
async function handlesAtRest(): Promise<string[]> {
  for (let turns = 0; turns < 100 && handlesNow().length > handles.length; turns += 1) {
    await new Promise((resolve) => void setTimeout(resolve, 10))
  }
  return handlesNow()
}

function handlesNow(): string[] {
  return process.getActiveResourcesInfo().toSorted()
}

function heapNow(): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}
