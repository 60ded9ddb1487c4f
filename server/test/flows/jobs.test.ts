/**
 * A few kills of the program while it runs jobs, with every test run; `npm run test:jobs` has as many as one likes.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runJobs, type JobResult, type JobWeakness } from '../jobs/harness.ts'

describe('a vault killed while it runs jobs', () => {
  test('loses none, runs none twice that must not be, and delivers each under its name', async () => {
    const result = await killed(3, null)
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.ok(result.accepted > 10, `${result.accepted} jobs were accepted`)
    assert.equal(result.delivered + result.givenUp, result.accepted)
  })

  // Else the harness is blind, and the test above says nothing.
  test('is found out when it forgets jobs', async () => {
    const { faults } = await killed(2, 'forgetful')
    assert.ok(faults.lost > 0, `seed ${SEED}`)
  })
})

/** Another one every day: the machine is not the same twice anyway. */
const SEED = Math.floor(Date.now() / 86_400_000)

async function killed(kills: number, weakness: JobWeakness | null): Promise<JobResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-jobs-'))
  try {
    return await runJobs({ folder, kills, seed: SEED, weakness, onKill: () => {} })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
