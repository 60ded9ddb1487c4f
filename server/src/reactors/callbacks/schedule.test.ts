import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { CALLBACK_PAUSE_MS, CALLBACK_RETRY_AFTER_MS_MAX } from '../../base/limits.ts'
import { parseRetryAfter, pauseAfter } from './schedule.ts'

const FIRST = CALLBACK_PAUSE_MS

describe('pauseAfter()', () => {
  test('doubles from 15 seconds to 45 minutes, ten times, and then there is none', () => {
    const pauses = Array.from({ length: 12 }, (_, n) => pauseAfter(n + 1, FIRST, 0, null))
    const seconds = [15, 30, 60, 120, 240, 480, 960, 1920, 2700, 2700].map((it) => it * 1000)
    assert.deepEqual(pauses, [...seconds, null, null])
  })

  test('begins with what the operator set, even where that is more than it would come to', () => {
    assert.deepEqual([pauseAfter(1, 100, 0, null), pauseAfter(3, 100, 0, null)], [100, 400])
    const hour = 60 * 60 * 1000
    assert.deepEqual([pauseAfter(1, hour, 0, null), pauseAfter(2, hour, 0, null)], [hour, hour])
  })

  test('adds a tenth at most, by chance', () => {
    assert.equal(pauseAfter(1, FIRST, 255, null), 16_500)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 }), fc.nat(255), (attempts, chance) => {
        const [least, pause] = [
          pauseAfter(attempts, FIRST, 0, null)!,
          pauseAfter(attempts, FIRST, chance, null)!,
        ]
        assert.ok(pause >= least && pause <= least * 1.1)
      }),
    )
  })

  test('is as long as the receiver asked for, if that is longer, up to an hour', () => {
    assert.equal(pauseAfter(1, FIRST, 0, 20_000), 20_000)
    assert.equal(pauseAfter(1, FIRST, 0, 1_000), 15_000)
    assert.equal(pauseAfter(1, FIRST, 0, 10 ** 12), CALLBACK_RETRY_AFTER_MS_MAX)
    assert.equal(pauseAfter(11, FIRST, 0, 20_000), null)
  })
})

describe('parseRetryAfter()', () => {
  const NOW = Date.UTC(2026, 0, 1)

  test('reads seconds, and dates', () => {
    assert.equal(parseRetryAfter('120', NOW), 120_000)
    assert.equal(parseRetryAfter('Thu, 01 Jan 2026 00:02:00 GMT', NOW), 120_000)
    assert.equal(parseRetryAfter('Wed, 31 Dec 2025 00:00:00 GMT', NOW), 0)
  })

  test('takes for nothing what is neither', () => {
    for (const text of [undefined, '', '-1', '1.5', 'soon', '1e3', 'Xyz, nothing', '2026-01-01']) {
      assert.equal(parseRetryAfter(text, NOW), null, text)
    }
  })
})
