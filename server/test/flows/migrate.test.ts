import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { temporaryFolder } from '../kit/running-vault.ts'
import { SEED } from '../kit/seed.ts'
import { moveInterrupted } from '../migrate/run.ts'

test('a vault that is moved and killed on the way is the same in the end: what is stored, opens, and happens', async (t) => {
  const folder = temporaryFolder(t)
  const about = {
    folder,
    database: await freshDatabase(),
    tokens: 300,
    interruptions: 2,
    seed: SEED,
  }
  const tally = await moveInterrupted({ ...about, report: () => {} })
  assert.equal(tally.kills, 2)
  assert.ok(tally.tokens > 600 && tally.envelopes > 900 && tally.events > 20)
})
