import assert from 'node:assert/strict'
import { test } from 'node:test'
import { READ_CHUNKS_PER_TICK } from './limits.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { ReadThrottle } from './read-throttle.ts'

const CLOCK = new SystemClock()

test('the budget is spent after so many chunks, and the next tick of the event loop has one of its own', async () => {
  const throttle = new ReadThrottle(CLOCK)
  for (let it = 1; it < READ_CHUNKS_PER_TICK; it += 1) throttle.count(0)
  assert.equal(throttle.isExhausted, false)
  throttle.count(0)
  assert.equal(throttle.isExhausted, true)
  await nextLoopTick()
  assert.equal(throttle.isExhausted, false)
})

test('what was read far beyond the budget is a debt, followed by a pause', async () => {
  const rests: [ms: number, end: () => void][] = []
  const after = (ms: number) => new Promise<void>((end) => void rests.push([ms, end]))
  const throttle = new ReadThrottle({ yield: () => CLOCK.yield(), after })
  let read = 0
  throttle.spend(10 * READ_CHUNKS_PER_TICK)
  throttle.wait('owner', () => (read += 1))
  for (let it = 0; it < 5; it += 1) await nextLoopTick()
  assert.deepEqual([throttle.isExhausted, read], [true, 0])
  const [[ms, end], ...others] = rests as [(typeof rests)[0]]
  assert.deepEqual([ms > 10, others], [true, []])
  end()
  await nextLoopTick()
  assert.deepEqual([throttle.isExhausted, read], [false, 1])
})

test('what is foreseen of who goes on is part of the budget', async () => {
  const throttle = new ReadThrottle(CLOCK)
  const gone: string[] = []
  for (const it of ['a', 'b', 'c']) throttle.wait(it, () => gone.push(it), READ_CHUNKS_PER_TICK)
  await nextLoopTick()
  assert.deepEqual(gone, ['a'])
  await nextLoopTick()
  assert.deepEqual(gone, ['a', 'b'])
})

test('a long chunk counts for more than a short one', () => {
  const throttle = new ReadThrottle(CLOCK)
  for (let it = 0; it < READ_CHUNKS_PER_TICK / 2; it += 1) throttle.count(4096)
  assert.equal(throttle.isExhausted, true)
})

test('of those who wait one owner comes after the other, however much one has waiting', async () => {
  const throttle = new ReadThrottle(CLOCK)
  const order: string[] = []
  const read = (owner: string) => () => {
    order.push(owner)
    // Each reads as much as the budget of a tick.
    for (let it = 0; it < READ_CHUNKS_PER_TICK; it += 1) throttle.count(0)
  }
  for (let it = 0; it < 5; it += 1) throttle.wait('greedy', read('greedy'))
  throttle.wait('modest', read('modest'))
  throttle.wait('other', read('other'))
  assert.deepEqual(order, [])
  await nextLoopTick()
  assert.deepEqual(order, ['greedy'])
  for (let it = 0; it < 6; it += 1) await nextLoopTick()
  assert.deepEqual(order, ['greedy', 'modest', 'other', 'greedy', 'greedy', 'greedy', 'greedy'])
})

function nextLoopTick(): Promise<void> {
  return CLOCK.yield()
}
