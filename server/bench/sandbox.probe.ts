/**
 * Measures the sandbox of the checkout that is its argument: one round for each line of input, a line of JSON for each round, in
 * milliseconds.
 */
import { createInterface } from 'node:readline'
import type { JailRunner as Runner } from '../src/adapters/jail/jail-runner.ts'
import type { Sensitive as SensitiveValue } from '../src/base/sensitive.ts'
import { median } from './table.ts'

const checkout = process.argv[2]!
const load = (path: string): Promise<unknown> => import(`${checkout}/server/src/${path}`)
const { JailRunner } = (await load('adapters/jail/jail-runner.ts')) as {
  JailRunner: typeof Runner
}
const { NO_WAY } = (await load('adapters/jail/no-way.ts')) as { NO_WAY: never }
const { Sensitive } = (await load('base/sensitive.ts')) as { Sensitive: typeof SensitiveValue }

const COLD_RUNS = 12
/** Processes that wait for a run already. */
const COLD_SKIPPED = 3
const WARM_RUNS = 500
const LONG_RUNS = 40
const LONG_CHARS = 1024 * 1024

const ECHO = 'module.exports = (req) => ({ raw: req.args })'
const LONG = `module.exports = () => ({ raw: 'x'.repeat(${LONG_CHARS}) })`

const runner = await JailRunner.open({
  level: 'jail',
  packages: [],
  authorities: [],
  waysOut: NO_WAY,
})
if (runner.flaw !== null) throw new Error(runner.flaw)
let reactors = 0

for await (const _line of createInterface(process.stdin)) {
  const cold = await times(COLD_RUNS, () => run(`cold ${reactors++}`, ECHO))
  const warm = await times(WARM_RUNS, () => run('warm', ECHO))
  const long = await times(LONG_RUNS, () => run('long', LONG))
  const figures = {
    coldMs: median(cold.slice(COLD_SKIPPED)),
    warmMs: median(warm),
    longMs: median(long),
  }
  process.stdout.write(`${JSON.stringify(figures)}\n`)
}
await runner.close()

async function times(count: number, once: () => Promise<void>): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; n < count; n++) {
    const begun = performance.now()
    await once()
    took.push(performance.now() - begun)
  }
  return took
}

async function run(reactorId: string, code: string): Promise<void> {
  const outcome = await runner.run({
    tenantId: 'bench',
    reactorId,
    version: '1',
    code,
    args: new Sensitive('{"card":{"number":"4242424242424242"}}'),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs: 30_000,
  })
  if (outcome.kind !== 'returned') throw new Error(`It ${outcome.kind}`)
}
