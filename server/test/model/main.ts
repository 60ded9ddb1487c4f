/**
 * `npm run test:model --workspace server -- --sequences 10000`: holds the service to a model of maps, over each
 * store, or over `--store memory|sqlite|postgres` alone. Throws with a seed and a path to play a failure again.
 */
import { parseArgs } from 'node:util'
import { STORES } from './real.ts'
import { holdToModel } from './run.ts'

const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    store: { type: 'string' },
  },
})
const [sequences, seed] = [Number(values.sequences), Number(values.seed)]
const stores = STORES.filter((it) => values.store === undefined || values.store === it)
if (stores.length === 0) throw new Error(`--store is one of ${STORES.join(', ')}`)
for (const store of stores) {
  const begun = performance.now()
  await holdToModel(store, { sequences, seed })
  const seconds = ((performance.now() - begun) / 1000).toFixed(0)
  process.stdout.write(`${store}: ${sequences} sequences agree, seed ${seed}, ${seconds} s\n`)
}
