import assert from 'node:assert/strict'
import { test } from 'node:test'
import { READ_CHUNKS_A_TURN } from './limits.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { ReadingTurns } from './reading-turns.ts'

const CLOCK = new SystemClock()

test('a turn is over after so many chunks, and the next one begins with the event loop', async () => {
  const turns = new ReadingTurns(CLOCK)
  for (let it = 1; it < READ_CHUNKS_A_TURN; it += 1) turns.count(0)
  assert.equal(turns.isOver, false)
  turns.count(0)
  assert.equal(turns.isOver, true)
  await nextTurn()
  assert.equal(turns.isOver, false)
})

test('what was read far beyond a turn is followed by a rest', async () => {
  const rests: [ms: number, end: () => void][] = []
  const after = (ms: number) => new Promise<void>((end) => void rests.push([ms, end]))
  const turns = new ReadingTurns({ yield: () => CLOCK.yield(), after })
  let read = 0
  turns.spend(10 * READ_CHUNKS_A_TURN)
  turns.wait('owner', () => (read += 1))
  for (let it = 0; it < 5; it += 1) await nextTurn()
  assert.deepEqual([turns.isOver, read], [true, 0])
  const [[ms, end], ...others] = rests as [(typeof rests)[0]]
  assert.deepEqual([ms > 10, others], [true, []])
  end()
  await nextTurn()
  assert.deepEqual([turns.isOver, read], [false, 1])
})

test('what is foreseen of who goes on is part of the turn', async () => {
  const turns = new ReadingTurns(CLOCK)
  const gone: string[] = []
  for (const it of ['a', 'b', 'c']) turns.wait(it, () => gone.push(it), READ_CHUNKS_A_TURN)
  await nextTurn()
  assert.deepEqual(gone, ['a'])
  await nextTurn()
  assert.deepEqual(gone, ['a', 'b'])
})

test('a long chunk counts for more than a short one', () => {
  const turns = new ReadingTurns(CLOCK)
  for (let it = 0; it < READ_CHUNKS_A_TURN / 2; it += 1) turns.count(4096)
  assert.equal(turns.isOver, true)
})

test('of those who wait one owner comes after the other, however much one has waiting', async () => {
  const turns = new ReadingTurns(CLOCK)
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
