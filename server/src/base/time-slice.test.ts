import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { YIELD_AFTER_MS } from './limits.ts'
import { runSliced, TimeSlice } from './time-slice.ts'

/** A clock that advances by `pieceMs` with each piece of work, and counts the pieces between yields. */
function pieceClock(pieceMs: number) {
  let elapsed = 0
  const between = [0]
  const clock = {
    elapsed: () => elapsed,
    yield: async () => {
      // Others take their time, too.
      elapsed += 1_000
      between.push(0)
    },
  }
  const work = (): void => {
    elapsed += pieceMs
    between[between.length - 1]! += 1
  }
  return { clock, work, between }
}

describe('TimeSlice', () => {
  test('yields once its time is used up, and does not count the time of others', async () => {
    const { clock, work, between } = pieceClock(YIELD_AFTER_MS / 8)
    const slice = new TimeSlice(clock)
    for (let it = 0; it < 20; it++) {
      work()
      await slice.yieldIfDue()
    }
    assert.deepEqual(between, [8, 8, 4])
  })

  test('returns undefined while there is time, so that quick work need not wait', () => {
    const { clock, work } = pieceClock(YIELD_AFTER_MS / 8)
    const slice = new TimeSlice(clock)
    for (let it = 1; it < 8; it++) {
      work()
      assert.equal(slice.yieldIfDue(), undefined)
    }
    work()
    assert.notEqual(slice.yieldIfDue(), undefined)
  })

  test('may be longer, and looks at the clock no more often than it is told', async () => {
    const { clock, work, between } = pieceClock(1)
    let looks = 0
    const elapsed = (): number => {
      looks += 1
      return clock.elapsed()
    }
    const slice = new TimeSlice({ ...clock, elapsed }, { ms: 10, lookEvery: 4 })
    for (let it = 0; it < 30; it++) {
      work()
      await slice.yieldIfDue()
    }
    assert.deepEqual(between, [12, 12, 6])
    // At the start, at each fourth piece, and after each yield.
    assert.equal(looks, 1 + 7 + 2)
  })
})

describe('runSliced()', () => {
  test('runs the work to its end in slices, and returns its result', async () => {
    const { clock, work, between } = pieceClock(YIELD_AFTER_MS / 2)
    const result = await runSliced(
      clock,
      (function* () {
        for (let it = 0; it < 5; it++) {
          work()
          yield
        }
        return 'done'
      })(),
    )
    assert.equal(result, 'done')
    assert.deepEqual(between, [2, 2, 1])
  })

  test('rejects with what the work throws', async () => {
    const { clock } = pieceClock(0)
    const work = (function* () {
      yield
      throw new Error('enough')
    })()
    await assert.rejects(runSliced(clock, work), /enough/)
  })
})
