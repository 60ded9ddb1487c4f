import assert from 'node:assert/strict'
import { test } from 'node:test'
import { temporaryFolder } from '../kit/running-vault.ts'
import { rotateUnderLoad } from '../rotation/run.ts'

test('a data key is rotated under load and kills: every read succeeds, and nothing is left under the old one', async (t) => {
  const folder = temporaryFolder(t)
  const about = { folder, tokens: 3_000, kills: 2, seed: 7, callers: 4 }
  const timing = { retirementMs: 200, calmMs: 0 }
  const tally = await rotateUnderLoad({ ...about, ...timing, tell: () => {} })
  assert.equal(tally.kills, 2)
  assert.ok(tally.rotations >= 1)
  assert.ok(tally.reads > 0 && tally.written > 0)
})
