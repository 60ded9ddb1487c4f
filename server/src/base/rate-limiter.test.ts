import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { RateLimiter } from './rate-limiter.ts'

const MINUTE_MS = 60_000

/** Requests per minute, among them numbers that do not divide a minute. */
const perMinute = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 100_000 }))
/** A time since an arbitrary start, in eighths of a millisecond: adding whole ones rounds nothing. */
const start = fc.nat(1_000_000_000).map((eighths) => eighths / 8)
/** Milliseconds between requests: bursts, and pauses. */
const gaps = fc.array(
  fc.oneof(
    fc.constant(0),
    fc.nat(50),
    fc.nat(10_000),
    fc.nat(200_000),
    fc.double({ min: 0, max: 90_000, noNaN: true }),
  ),
  { maxLength: 150 },
)

/** Makes a request at `now`, and returns whether it was admitted. */
function ask(limiter: RateLimiter, now: number, owner = 'a'): boolean {
  if (limiter.waitMs(owner, now) > 0) return false
  limiter.take(owner, now)
  return true
}

/** Returns the times, in whole milliseconds, at which requests with these gaps were admitted. */
function admittedTimes(limit: number, from: number, between: readonly number[]): number[] {
  const limiter = new RateLimiter(limit, 1)
  let now = from
  return between.flatMap((gap) => {
    now += gap
    return ask(limiter, now) ? [Math.floor(now)] : []
  })
}

describe('RateLimiter', () => {
  test('never admits more within a time than the limit, and the limit for that time', () => {
    const small = fc.integer({ min: 1, max: 20 })
    fc.assert(
      fc.property(small, start, gaps, (limit, from, between) => {
        const times = admittedTimes(limit, from, between)
        for (const [first, begin] of times.entries()) {
          for (const [last, end] of times.entries()) {
            if (last < first) continue
            const most = limit + ((end - begin) * limit) / MINUTE_MS
            assert.ok(last - first + 1 <= most, `${last - first + 1} within ${end - begin} ms`)
          }
        }
      }),
    )
  })

  test('admits as many as the limit at once after a quiet minute, and no more', () => {
    const small = fc.integer({ min: 1, max: 2_000 })
    fc.assert(
      fc.property(small, start, gaps, (limit, from, between) => {
        const limiter = new RateLimiter(limit, 1)
        let now = from
        for (const gap of between) ask(limiter, (now += gap))
        now += MINUTE_MS + 1
        for (let count = 0; count < limit; count++) assert.ok(ask(limiter, now), `${count}`)
        assert.equal(ask(limiter, now), false)
      }),
    )
  })

  test('always admits a client whose requests are evenly spaced at the limit or slower', () => {
    fc.assert(
      fc.property(perMinute, start, fc.array(fc.nat(5_000)), (limit, from, slower) => {
        const limiter = new RateLimiter(limit, 1)
        let now = Math.floor(from)
        for (const more of slower) {
          now += Math.ceil(MINUTE_MS / limit) + more
          assert.ok(ask(limiter, now))
        }
      }),
    )
  })

  test('says exactly how long to wait, and refusals make it no longer', () => {
    fc.assert(
      fc.property(perMinute, start, fc.nat(20), (limit, from, again) => {
        const limiter = new RateLimiter(limit, 1)
        while (ask(limiter, from));
        const waitMs = limiter.waitMs('a', from)
        assert.ok(waitMs > 0 && waitMs <= Math.ceil(MINUTE_MS / limit))
        for (let count = 0; count < again; count++) ask(limiter, from + waitMs - 1)
        assert.equal(limiter.waitMs('a', from + waitMs - 1), 1)
        assert.ok(ask(limiter, from + waitMs))
      }),
      { numRuns: 30 },
    )
  })

  test('admits the limit per minute to a client that never stops asking', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), (limit) => {
        const steps = Array.from({ length: 3_000 }, (_, at) => (at === 0 ? 0 : 100))
        const inMinutes = (count: number) =>
          admittedTimes(limit, 0, steps).filter((it) => it < count * MINUTE_MS).length
        // Asking ten times a second, it may come up to 100 ms after its time.
        assert.ok(inMinutes(5) - inMinutes(1) >= 4 * limit * 0.9 - 1)
        assert.ok(inMinutes(5) <= 6 * limit)
      }),
      { numRuns: 10 },
    )
  })

  test('counts owners apart', () => {
    const limiter = new RateLimiter(1, 2)
    assert.deepEqual([ask(limiter, 0, 'a'), ask(limiter, 0, 'a')], [true, false])
    assert.equal(ask(limiter, 0, 'b'), true)
  })

  test('forgets the owner that was quiet for longest once there are more than it may hold', () => {
    const limiter = new RateLimiter(1, 2)
    for (const owner of ['a', 'b']) ask(limiter, 0, owner)
    assert.equal(ask(limiter, 0, 'a'), false)
    ask(limiter, 0, 'c')
    assert.deepEqual([ask(limiter, 0, 'a'), ask(limiter, 0, 'b')], [false, true])
  })
})
