import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { TICK_BATCH_MAX } from '../base/limits.ts'
import { joinTickBatch } from './tick-batching.ts'

const CLOCK = new SystemClock()

/** Returns how many waiters resumed in each tick of the event loop. */
async function turnsOf(count: number): Promise<number[]> {
  const gone: number[] = []
  const waiting = Array.from({ length: count }, (_, at) =>
    joinTickBatch(CLOCK).then(() => gone.push(at)),
  )
  const turns: number[] = []
  for (let before = 0; before < count; before = gone.length) {
    await CLOCK.yield()
    if (gone.length > before) turns.push(gone.length - before)
  }
  await Promise.all(waiting)
  return turns
}

test('joinTickBatch() has as many as TICK_BATCH_MAX go on in one turn, and more in the next ones', async () => {
  assert.deepEqual(await turnsOf(TICK_BATCH_MAX), [TICK_BATCH_MAX])
  assert.deepEqual(await turnsOf(1), [1])
  const some = TICK_BATCH_MAX * 2 + 3
  assert.deepEqual(await turnsOf(some), [TICK_BATCH_MAX, TICK_BATCH_MAX, 3])
})

test('joinTickBatch() has those go on first who waited first', async () => {
  const order: number[] = []
  const count = TICK_BATCH_MAX + 5
  await Promise.all(
    Array.from({ length: count }, (_, at) => joinTickBatch(CLOCK).then(() => order.push(at))),
  )
  assert.deepEqual(order, [...Array(count).keys()])
})
