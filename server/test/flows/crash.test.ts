/**
 * A few kills of the crash harness, with every test run; `npm run test:crash` has as many as one likes.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { run, type Result } from '../../crash/harness.ts'
import type { Weakness } from '../../crash/weak-store.ts'

describe('a server killed under load', { concurrency: true }, () => {
  test('keeps what it acknowledged, and of anything else all or nothing', async () => {
    const result = await killed({ kills: 10, weakness: null })
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.deepEqual(result.kills, { named: 5, random: 5, starting: 0 })
    assert.ok(result.ackedTokens > 100, `${result.ackedTokens} tokens were acknowledged`)
    assert.ok(result.resolvedOperations > 0, 'nothing was in doubt')
    assert.equal(result.visibleTokens, result.ackedTokens + result.untoldTokens)
  })

  // Else the harness is blind, and the test above says nothing. It ends with the first fault, mostly after a few kills.
  test('is found out when it acknowledges before the commit', async () => {
    const { faults } = await killed({ kills: 100, weakness: 'early' })
    assert.ok(faults.lost > 0, `seed ${SEED}`)
  })

  test('is found out when it does not wait for transactions', async () => {
    const { faults } = await killed({ kills: 100, weakness: 'leaky' })
    assert.ok(faults.ghost > 0, `seed ${SEED}`)
  })
})

/** Another one every day: the machine is not the same twice anyway. */
const SEED = Math.floor(Date.now() / 86_400_000)

async function killed({
  kills,
  weakness,
}: {
  kills: number
  weakness: Weakness | null
}): Promise<Result> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-crash-'))
  try {
    return await run({
      folder,
      kills,
      weakness,
      seed: SEED,
      clients: 16,
      allEvery: 5,
      stopAtFault: weakness !== null,
      onKill: () => {},
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
