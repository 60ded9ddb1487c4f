/** A few kills of the crash harness; `npm run test:crash -- --kills 1000` is the long run. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { run, type HarnessOptions, type CrashResult } from '../../crash/harness.ts'
import { assertDetected } from '../kit/faults.ts'
import { SEED } from '../kit/seed.ts'

/** Points where acknowledged data could be lost. The load passes each often, so a run kills at each. */
const POINTS = ['inserted', 'committed', 'asked', 'committing', 'replied', 'told'] as const

describe('a server killed under load', { concurrency: true }, () => {
  test('keeps what it acknowledged, and of anything else all or nothing', async () => {
    const result = await killed({
      // Every other one is at a point.
      kills: 2 * POINTS.length,
      points: POINTS,
      passMsMax: 600_000,
      weakness: null,
      stopAtFault: false,
      enough: isEnough,
    })
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.deepEqual(Object.keys(result.points).toSorted(), POINTS.toSorted())
    assert.equal(result.missed, 0)
    assert.ok(result.kills.random >= POINTS.length)
    assert.ok(isEnough(result))
    assert.equal(result.visibleTokens, result.ackedTokens + result.untoldTokens)
  })

  // If the harness misses these, the test above proves nothing.
  test('is found out when it acknowledges before the commit', async () => {
    // Where callers were told of what is not on disk.
    const points = ['inserted', 'committing'] as const
    const { faults } = await killed({ kills: 100, points, weakness: 'early', stopAtFault: true })
    assertDetected(faults)
  })

  test('is found out when it does not wait for transactions', async () => {
    const points = ['committed'] as const
    const { faults } = await killed({ kills: 100, points, weakness: 'leaky', stopAtFault: true })
    assertDetected(faults)
  })
})

/** Something was acknowledged, and something was in doubt until its caller asked again. */
function isEnough(it: Pick<CrashResult, 'ackedTokens' | 'resolvedOperations'>): boolean {
  return it.ackedTokens > 100 && it.resolvedOperations > 0
}

type CrashOptions = Pick<
  HarnessOptions,
  'kills' | 'points' | 'weakness' | 'stopAtFault' | 'enough'
> &
  Partial<Pick<HarnessOptions, 'passMsMax'>>

async function killed(own: CrashOptions): Promise<CrashResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-crash-'))
  try {
    const load = { seed: SEED, clients: 8, passMsMax: 1_000, allEvery: 5 }
    return await run({ folder, ...load, ...own, onKill: () => {} })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
