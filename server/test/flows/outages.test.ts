/**
 * A few outages of PostgreSQL, with every test run; `npm run test:outages` has as many as one likes.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import type { Weakness } from '../../crash/weak-store.ts'
import { startCluster } from '../kit/postgres/cluster.ts'
import { runOutages, type OutageResult } from '../outages/harness.ts'

describe('a vault whose database is brought down under load', () => {
  test('keeps what it acknowledged, of anything else all or nothing, and is back with the database', async () => {
    const result = await outages({ downfalls: 2, backends: 10, weakness: null })
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.equal(result.backends, 10)
    assert.ok(result.ackedTokens > 50, `${result.ackedTokens} tokens were acknowledged`)
    assert.ok(result.resolvedOperations > 0, 'nothing was in doubt')
    assert.equal(result.visibleTokens, result.ackedTokens + result.untoldTokens)
  })

  // Else the harness is blind, and the test above says nothing.
  test('is found out when it acknowledges before the commit', async () => {
    const { faults } = await outages({ downfalls: 3, backends: 0, weakness: 'early' })
    assert.ok(faults.lost > 0, `seed ${SEED}`)
  })
})

/** Another one every day: the machine is not the same twice anyway. */
const SEED = Math.floor(Date.now() / 86_400_000)

async function outages(options: {
  downfalls: number
  backends: number
  weakness: Weakness | null
}): Promise<OutageResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-outages-'))
  const cluster = await startCluster({ durable: true })
  try {
    return await runOutages({
      folder,
      cluster,
      ...options,
      seed: SEED,
      clients: 8,
      allEvery: 100,
      // However busy the machine is: how quick it is is for the long runs to say.
      answerMsMax: 25_000,
      backMsMax: 60_000,
      onRound: () => {},
    })
  } finally {
    await cluster.stop()
    rmSync(folder, { recursive: true })
  }
}
