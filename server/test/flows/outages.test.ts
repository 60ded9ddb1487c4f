/** A few outages of PostgreSQL; `npm run test:outages -- --postmaster 200 --backends 1000` is the long run. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { assertDetected } from '../kit/faults.ts'
import { startCluster } from '../kit/postgres/cluster.ts'
import { SEED } from '../kit/seed.ts'
import { runOutages, type OutageOptions, type OutageResult } from '../outages/harness.ts'

describe('a vault whose database is brought down under load', () => {
  test('keeps what it acknowledged, of anything else all or nothing, and is back with the database', async () => {
    const result = await outages({
      downfalls: 1,
      backends: 4,
      weakness: null,
      stopAtFault: false,
      enough: isEnough,
    })
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.equal(result.backends, 4)
    assert.ok(isEnough(result))
    assert.equal(result.visibleTokens, result.ackedTokens + result.untoldTokens)
  })

  // If the harness misses this, the test above proves nothing.
  test('is found out when it acknowledges before the commit', async () => {
    const { faults } = await outages({
      downfalls: 100,
      backends: 0,
      weakness: 'early',
      stopAtFault: true,
    })
    assertDetected(faults)
  })
})

/** Something was acknowledged, and something was in doubt until its caller asked again. */
function isEnough(it: Pick<OutageResult, 'ackedTokens' | 'resolvedOperations'>): boolean {
  return it.ackedTokens > 50 && it.resolvedOperations > 0
}

type OutagesOptions = Pick<
  OutageOptions,
  'downfalls' | 'backends' | 'weakness' | 'stopAtFault' | 'enough'
>

async function outages(own: OutagesOptions): Promise<OutageResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-outages-'))
  const cluster = await startCluster({ durable: true })
  try {
    return await runOutages({
      folder,
      cluster,
      ...own,
      seed: SEED,
      clients: 8,
      allEvery: 100,
      // Long enough for a busy machine; the long runs say how quick answers are.
      answerMsMax: 25_000,
      backMsMax: 60_000,
      onRound: () => {},
    })
  } finally {
    await cluster.stop()
    rmSync(folder, { recursive: true })
  }
}
