/**
 * `npm run test:model --workspace server -- --sequences 10000`: holds the service to a model of maps, over the
 * store in memory and the one in a file. Throws with a seed and a path to play a failure again.
 */
import { parseArgs } from 'node:util'
import { holdToModel } from './run.ts'

const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [sequences, seed] = [Number(values.sequences), Number(values.seed)]
for (const store of ['memory', 'sqlite'] as const) {
  const begun = performance.now()
  await holdToModel(store, { sequences, seed })
  const seconds = ((performance.now() - begun) / 1000).toFixed(0)
  process.stdout.write(`${store}: ${sequences} sequences agree, seed ${seed}, ${seconds} s\n`)
}
