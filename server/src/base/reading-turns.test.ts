import assert from 'node:assert/strict'
import { test } from 'node:test'
import { READ_CHUNKS_A_TURN } from './limits.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { ReadingTurns } from './reading-turns.ts'

const CLOCK = new SystemClock()

test('a turn is over after so many chunks, and the next one begins with the event loop', async () => {
  const turns = new ReadingTurns(nextTurn)
  for (let it = 1; it < READ_CHUNKS_A_TURN; it += 1) turns.count(0)
  assert.equal(turns.isOver, false)
  turns.count(0)
  assert.equal(turns.isOver, true)
  await nextTurn()
  assert.equal(turns.isOver, false)
})

test('what was read beyond a turn is taken off the next ones', async () => {
  const turns = new ReadingTurns(nextTurn)
  for (let it = 0; it < 3 * READ_CHUNKS_A_TURN; it += 1) turns.count(0)
  const over: boolean[] = []
  turns.wait('owner', () => over.push(turns.isOver))
  for (let it = 0; it < 2; it += 1) await nextTurn()
  assert.deepEqual([turns.isOver, over], [true, []])
  await nextTurn()
  assert.deepEqual([turns.isOver, over], [false, [false]])
})

test('a long chunk counts for more than a short one', () => {
  const turns = new ReadingTurns(nextTurn)
  for (let it = 0; it < READ_CHUNKS_A_TURN / 2; it += 1) turns.count(4096)
  assert.equal(turns.isOver, true)
})

test('of those who wait one owner comes after the other, however much one has waiting', async () => {
  const turns = new ReadingTurns(nextTurn)
  const order: string[] = []
  const read = (owner: string) => () => {
    order.push(owner)
    // Each reads as much as a turn has.
    for (let it = 0; it < READ_CHUNKS_A_TURN; it += 1) turns.count(0)
  }
  for (let it = 0; it < 5; it += 1) turns.wait('greedy', read('greedy'))
  turns.wait('modest', read('modest'))
  turns.wait('other', read('other'))
  assert.deepEqual(order, [])
  await nextTurn()
  assert.deepEqual(order, ['greedy'])
  for (let it = 0; it < 6; it += 1) await nextTurn()
  assert.deepEqual(order, ['greedy', 'modest', 'other', 'greedy', 'greedy', 'greedy', 'greedy'])
})

function nextTurn(): Promise<void> {
  return CLOCK.yield()
}
