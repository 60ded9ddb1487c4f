import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { temporaryFolder } from '../kit/running-vault.ts'
import { SEED } from '../kit/seed.ts'
import { rotateUnderLoad, type RotationTally } from '../rotation/run.ts'

const ABOUT = {
  tokens: 500,
  kills: 2,
  seed: SEED,
  callers: 4,
  // A rotation takes seconds and mostly waits; callers without a pause would use up the rest of the machine.
  pauseMs: 20,
  retirementMs: 200,
  calmMs: 300,
}

test('a data key is rotated under load and kills: every read succeeds, and nothing is left under the old one', async (t) => {
  assertDone(await rotateUnderLoad({ ...ABOUT, ...hereIn(t), database: null, servers: 1 }))
})

test('so it is by one of two servers on one database, while either is killed', async (t) => {
  const database = await freshDatabase()
  const keysShared = { believedMs: 200, announcedMs: 2_000 }
  assertDone(await rotateUnderLoad({ ...ABOUT, ...hereIn(t), database, servers: 2, keysShared }))
})

function hereIn(t: TestContext) {
  return { folder: temporaryFolder(t), report: () => {} }
}

function assertDone({ kills, rotations, reads, written }: RotationTally): void {
  assert.equal(kills, ABOUT.kills)
  assert.ok(rotations >= 1)
  assert.ok(reads > 0 && written > 0)
}
