/** A few kills of one of two servers on one database; `npm run test:two-servers -- --kills 200` is the long run. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { assertDetected } from '../kit/faults.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { SEED } from '../kit/seed.ts'
import {
  runTwoServers,
  type TwoServersOptions,
  type TwoServersResult,
} from '../two-servers/harness.ts'

describe('two vaults on one database, one of which is killed while both run jobs', () => {
  test('lose none, run none twice that must not be, and deliver each under its name', async () => {
    const result = await killed({
      kills: 1,
      weakness: null,
      enough: ({ accepted }) => accepted > 10,
    })
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.ok(result.accepted > 10)
    assert.equal(result.delivered + result.deadLettered, result.accepted)
  })

  // If the harness misses this, the test above proves nothing.
  test('are found out when they forget jobs', async () => {
    const { faults } = await killed({
      kills: 1,
      weakness: 'forgetful',
      enough: ({ forgotten }) => forgotten > 0,
    })
    assertDetected(faults)
  })
})

type ServersOptions = Pick<TwoServersOptions, 'kills' | 'weakness' | 'enough'>

async function killed(own: ServersOptions): Promise<TwoServersResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-two-servers-'))
  try {
    const options = { folder, database: await freshDatabase(), seed: SEED, ...own }
    const limits = { minutes: 5, lifeJobsMax: 12, patient: false }
    return await runTwoServers({ ...options, ...limits, onKill: () => {} })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
