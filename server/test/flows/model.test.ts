/** A few sequences of the model; `npm run test:model -- --sequences 10000` is the long run. */
import { test } from 'node:test'
import { SEED } from '../kit/seed.ts'
import { holdToModel } from '../model/run.ts'

for (const [store, sequences] of [
  ['memory', 80],
  ['sqlite', 6],
  ['postgres', 6],
] as const) {
  test(`over ${store}, tokens and transactions are what the model says, whatever happens`, async () => {
    await holdToModel(store, { sequences, seed: SEED })
  })
}
