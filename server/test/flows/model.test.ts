/** A few sequences of the model, with every test run; `npm run test:model` has as many as one likes. */
import { test } from 'node:test'
import { holdToModel } from '../model/run.ts'

/** Another one every day. */
const SEED = Math.floor(Date.now() / 86_400_000)

for (const [store, sequences] of [
  ['memory', 150],
  ['sqlite', 12],
  ['postgres', 12],
] as const) {
  test(`over ${store}, tokens and transactions are what the model says, whatever happens`, async () => {
    await holdToModel(store, { sequences, seed: SEED })
  })
}
