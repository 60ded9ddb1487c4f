/** A whole service whose reactors take what they can: it stays ready, and what they cost its process has bounds. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { noBubblewrap } from '../../kit/bubblewrap.ts'
import { excessOf, startCostlyGuests, type CostlyGuests } from './costly-guests.ts'
import { OPENING, UNREADING, type GuestAttack } from './guest-attacks.ts'

/** `npm run test:guest-costs` has 10, and all attacks. */
const SECONDS = 1.5

describe('the service is ready, and its descriptors and memory are bounded,', () => {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-guest-costs-'))
  let guests: CostlyGuests
  before(async () => {
    const level = noBubblewrap() === false ? 'hardened' : 'jail'
    guests = await startCostlyGuests({ level, folder })
  })
  after(async () => {
    await guests.stop()
    rmSync(folder, { recursive: true })
  })

  for (const it of OPENING) {
    test(`while code opens and closes connections by ${it.name}`, () => attack(it))
  }

  for (const it of UNREADING.filter(({ slow }) => slow !== true)) {
    test(`beside ${it.name}`, () => attack(it))
  }

  async function attack(it: GuestAttack): Promise<void> {
    const costs = await guests.attack(it, SECONDS)
    assert.equal(excessOf(it, costs), '', JSON.stringify(costs))
    assert.ok(costs.probes > 1, JSON.stringify(costs))
    if (it.connects === true) assert.ok(costs.accepted > 0, JSON.stringify(costs))
  }
})
