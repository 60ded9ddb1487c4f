import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SHORT_LIST_YIELD_AFTER_MS, YIELD_AFTER_MS } from '../base/limits.ts'
import { inChunks } from './chunked-work.ts'

/** Returns a clock that advances `stepMs` per piece of work and counts how often the work yielded. */
function workingClock(stepMs: number) {
  let elapsed = 0
  let yields = 0
  return {
    clock: {
      now: () => 0,
      elapsed: () => elapsed,
      yield: async () => {
        yields += 1
        elapsed += 1000
      },
      after: async () => undefined,
    },
    work: () => void (elapsed += stepMs),
    yields: () => yields,
  }
}

describe('inChunks()', () => {
  test('does the work in order, once each', async () => {
    for (const count of [0, 1, 7, 8, 9, 1000]) {
      const { clock, work } = workingClock(YIELD_AFTER_MS)
      const done: number[] = []
      await inChunks(clock, count, (index) => {
        work()
        done.push(index)
      })
      assert.deepEqual(done, Array.from(Array(count).keys()))
    }
  })

  test('waits for work that takes its time before the next', async () => {
    const { clock } = workingClock(0)
    const done: string[] = []
    await inChunks(clock, 3, async (index) => {
      done.push(`begin ${index}`)
      await Promise.resolve()
      done.push(`end ${index}`)
    })
    assert.deepEqual(done, ['begin 0', 'end 0', 'begin 1', 'end 1', 'begin 2', 'end 2'])
  })

  test('yields to others every YIELD_AFTER_MS, and lets none of them count as its own', async () => {
    const { clock, work, yields } = workingClock(YIELD_AFTER_MS / 16)
    await inChunks(clock, 1600, work)
    assert.equal(yields(), 100)
  })

  test('holds the event loop for no more than that and a few pieces of work', async () => {
    const { clock, work } = workingClock(YIELD_AFTER_MS / 3)
    let since = clock.elapsed()
    let longest = 0
    const turning = {
      ...clock,
      yield: async () => {
        longest = Math.max(longest, clock.elapsed() - since)
        await clock.yield()
        since = clock.elapsed()
      },
    }
    await inChunks(turning, 1000, work)
    assert.ok(longest > 0 && longest < YIELD_AFTER_MS * 4, `${longest} ms`)
  })

  test('does not yield when there is little to do', async () => {
    const { clock, work, yields } = workingClock(YIELD_AFTER_MS / 1000)
    await inChunks(clock, 800, work)
    assert.equal(yields(), 0)
  })

  test('yields to others when a few take long, and then as when there are many', async () => {
    const { clock, work, yields } = workingClock(SHORT_LIST_YIELD_AFTER_MS)
    await inChunks(clock, 16, work)
    assert.equal(yields(), 4)
    const quick = workingClock(SHORT_LIST_YIELD_AFTER_MS / 129)
    await inChunks(quick.clock, 128, quick.work)
    assert.equal(quick.yields(), 0)
  })

  test('stops where the work throws, and rejects with that', async () => {
    const { clock } = workingClock(0)
    const done: number[] = []
    const failing = async (): Promise<void> => {
      await inChunks(clock, 10, (index) => {
        if (index === 4) throw new Error('enough')
        done.push(index)
      })
    }
    await assert.rejects(failing, /enough/)
    assert.deepEqual(done, [0, 1, 2, 3])
  })
})
