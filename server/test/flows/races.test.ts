/** Some races; `npm run test:races -- --races 100000` is the long run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SEED } from '../kit/seed.ts'
import { freshFolder, openStore } from '../kit/sqlite-kit.ts'
import { races } from '../races/run.ts'

test('of commit, rollback and expiry at the same time one wins, and all who look agree', async (t) => {
  const store = await openStore(t, { folder: freshFolder(t) })
  const tally = await races(store, { count: 300, concurrency: 100, seed: SEED })
  for (const [how, often] of Object.entries(tally)) assert.ok(often > 10, `${how}: ${often}`)
})
