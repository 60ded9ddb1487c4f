/**
 * `npm run test:model --workspace server -- --sequences 10000`: holds the service to a model of maps, over each
 * store, or over `--store memory|sqlite|postgres` alone. With `--entities`, holds the rows of every described entity in the
 * store to one instead. Throws with a seed and a path to play a failure again.
 */
import { parseArgs } from 'node:util'
import type { StoreName } from '../kit/test-store.ts'
import { holdEntitiesToModel } from './entity-run.ts'
import { openReadable } from './entity-stores.ts'
import { STORES } from './real.ts'
import { holdToModel } from './run.ts'

const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    store: { type: 'string' },
    entities: { type: 'boolean', default: false },
  },
})
const [sequences, seed] = [Number(values.sequences), Number(values.seed)]
const stores = STORES.filter((it) => values.store === undefined || values.store === it)
if (stores.length === 0) throw new Error(`--store is one of ${STORES.join(', ')}`)
for (const store of stores) {
  const begun = performance.now()
  if (values.entities) await holdRows(store)
  else await holdToModel(store, { sequences, seed })
  const seconds = ((performance.now() - begun) / 1000).toFixed(0)
  process.stdout.write(`${store}: ${sequences} sequences agree, seed ${seed}, ${seconds} s\n`)
}

/** Opens a new store for every 500 sequences, with the next seed: a store in memory remembers each tenant it ever had. */
async function holdRows(name: StoreName): Promise<void> {
  for (let done = 0; done < sequences; done += 500) {
    const opened = await openReadable(name)
    try {
      const some = Math.min(500, sequences - done)
      await holdEntitiesToModel(opened, { sequences: some, seed: seed + done / 500 })
    } finally {
      await opened.close()
    }
  }
}
