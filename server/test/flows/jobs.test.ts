/** A few kills of the program while it runs jobs; `npm run test:jobs -- --kills 1000` is the long run. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runJobs, type JobHarnessOptions, type JobResult } from '../jobs/harness.ts'
import { assertDetected } from '../kit/faults.ts'
import { SEED } from '../kit/seed.ts'

describe('a vault killed while it runs jobs', () => {
  test('loses none, runs none twice that must not be, and delivers each under its name', async () => {
    const result = await killed({
      kills: 2,
      weakness: null,
      enough: ({ accepted }) => accepted > 10,
    })
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.ok(result.accepted > 10)
    assert.equal(result.delivered + result.deadLettered, result.accepted)
  })

  // If the harness misses this, the test above proves nothing.
  test('is found out when it forgets jobs', async () => {
    const { faults } = await killed({
      kills: 1,
      weakness: 'forgetful',
      enough: ({ forgotten }) => forgotten > 0,
    })
    assertDetected(faults)
  })
})

type JobsOptions = Pick<JobHarnessOptions, 'kills' | 'weakness' | 'enough'>

async function killed(own: JobsOptions): Promise<JobResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-jobs-'))
  try {
    return await runJobs({ folder, lifeJobsMax: 12, ...own, seed: SEED, onKill: () => {} })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
