/**
 * A few failovers of PostgreSQL; `npm run test:switchovers -- --switchovers 20 --kills 20` is the long run. The databases of
 * this file run only here, because they are killed.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { assertDetected } from '../kit/faults.ts'
import { SEED } from '../kit/seed.ts'
import {
  runSwitchovers,
  type SwitchoverOptions,
  type SwitchoverResult,
} from '../switchovers/harness.ts'
import { startLocalPair } from '../switchovers/local-pair.ts'

describe('two servers whose database fails over under load', () => {
  test('answer nothing from a standby, lose and double nothing, and go on by themselves', async () => {
    const result = await failovers({ switchovers: 1, kills: 1 })
    assert.deepEqual(result.stories, [], `seed ${SEED}`)
    assert.equal(result.probes, 2 * PROBES)
    assert.equal(result.visibleTokens, result.ackedTokens + result.untoldTokens)
  })

  // If the harness misses these, the test above proves nothing.
  test('are found out when they take a standby for a primary', async () => {
    const { faults } = await failovers({ switchovers: 20, kills: 0, acceptsStandbys: true })
    assertDetected(faults)
  })

  test('are found out when what they acknowledge is on no standby', async () => {
    const { faults } = await failovers({ switchovers: 0, kills: 20, synchronous: false })
    assertDetected(faults)
  })
})

/** Questions that a probe asks: four kinds, each ten times, of both servers. */
const PROBES = 80

interface FailoversOptions extends Pick<SwitchoverOptions, 'switchovers' | 'kills'> {
  readonly acceptsStandbys?: boolean
  readonly synchronous?: boolean
}

/** With a defect, stops at the first fault. */
async function failovers(options: FailoversOptions): Promise<SwitchoverResult> {
  const { acceptsStandbys = false, synchronous = true, ...events } = options
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-switchovers-'))
  const pair = await startLocalPair({ synchronous })
  try {
    return await runSwitchovers({
      ...events,
      folder,
      pair,
      seed: SEED,
      // A machine that is busy takes longer, and has less to do meanwhile.
      callers: { writers: 3, readers: 2, restMsMax: 200 },
      tokensMax: 30,
      acceptsStandbys,
      stopAtFault: acceptsStandbys || !synchronous,
      onEvent: () => {},
    })
  } finally {
    await pair.stop()
    rmSync(folder, { recursive: true })
  }
}
