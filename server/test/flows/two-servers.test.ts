/**
 * A few kills of one of two servers on one database, with every test run; `npm run test:two-servers` has as many as one likes.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import type { JobWeakness } from '../jobs/harness.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { runTwoServers, type TwoServersResult } from '../two-servers/harness.ts'

describe('two vaults on one database, one of which is killed while both run jobs', () => {
  test('lose none, run none twice that must not be, and deliver each under its name', async () => {
    const result = await killed(2, null)
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.ok(result.accepted > 10, `${result.accepted} jobs were accepted`)
    assert.equal(result.delivered + result.givenUp, result.accepted)
  })

  // Else the harness is blind, and the test above says nothing.
  test('are found out when they forget jobs', async () => {
    const { faults } = await killed(1, 'forgetful')
    assert.ok(faults.lost > 0, `seed ${SEED}`)
  })
})

/** Another one every day: the machine is not the same twice anyway. */
const SEED = Math.floor(Date.now() / 86_400_000)

async function killed(kills: number, weakness: JobWeakness | null): Promise<TwoServersResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-two-servers-'))
  try {
    const database = await freshDatabase()
    const options = { folder, database, kills, minutes: 5, seed: SEED, weakness, patient: false }
    return await runTwoServers({ ...options, onKill: () => {} })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
