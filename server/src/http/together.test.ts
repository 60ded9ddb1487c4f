import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { TOGETHER_MAX } from '../base/limits.ts'
import { together } from './together.ts'

const CLOCK = new SystemClock()

/** Returns how many of those who waited went on in each turn of the event loop. */
async function turnsOf(count: number): Promise<number[]> {
  const gone: number[] = []
  const waiting = Array.from({ length: count }, (_, at) =>
    together(CLOCK).then(() => gone.push(at)),
  )
  const turns: number[] = []
  for (let before = 0; before < count; before = gone.length) {
    await CLOCK.yield()
    if (gone.length > before) turns.push(gone.length - before)
  }
  await Promise.all(waiting)
  return turns
}

test('together() has as many as TOGETHER_MAX go on in one turn, and more in the next ones', async () => {
  assert.deepEqual(await turnsOf(TOGETHER_MAX), [TOGETHER_MAX])
  assert.deepEqual(await turnsOf(1), [1])
  const some = TOGETHER_MAX * 2 + 3
  assert.deepEqual(await turnsOf(some), [TOGETHER_MAX, TOGETHER_MAX, 3])
})

test('together() has those go on first who waited first', async () => {
  const order: number[] = []
  const count = TOGETHER_MAX + 5
  await Promise.all(
    Array.from({ length: count }, (_, at) => together(CLOCK).then(() => order.push(at))),
  )
  assert.deepEqual(order, [...Array(count).keys()])
})
