import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stillWorld } from '../../test/kit/still-world.ts'
import { PeriodicChecks } from './periodic-checks.ts'

test('PeriodicChecks runs every registered check once per period, from one timer, and none that was removed', async () => {
  const { clock } = stillWorld()
  let timers = 0
  const counted = { after: (ms: number) => (timers++, clock.after(ms)) }
  const checks = new PeriodicChecks(counted, 1000)
  const runs = [0, 0]
  const stop = runs.map((_, at) => checks.add(() => void runs[at]!++))
  await pass(999)
  assert.deepEqual(runs, [0, 0])
  await pass(1)
  assert.deepEqual(runs, [1, 1])
  stop[0]!()
  await pass(1000)
  assert.deepEqual([runs, timers], [[1, 2], 3])

  stop[1]!()
  await pass(1000)
  await pass(5000)
  assert.deepEqual([runs, timers], [[1, 2], 3], 'without checks there is no timer')
  checks.add(() => void runs[0]!++)
  await pass(1000)
  assert.deepEqual(runs, [2, 2])

  async function pass(ms: number): Promise<void> {
    clock.pass(ms)
    for (let turns = 0; turns < 5; turns++) await Promise.resolve()
  }
})
