import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { EGRESS_TICK_MS } from '../../base/limits.ts'
import { Timekeeper, type Timed } from './timekeeper.ts'

beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
afterEach(() => mock.timers.reset())

test('tick() comes to each that is watched, once, in whatever order they come and go', () => {
  const steps = fc.array(fc.nat(), { maxLength: 50 })
  fc.assert(
    fc.property(steps, (steps) => {
      const timekeeper = new Timekeeper()
      const watched: Clocked[] = []
      for (const step of steps) {
        if (step % 3 > 0) watched.push(new Clocked(timekeeper))
        else watched.splice(step % (watched.length + 1), 1)[0]?.leave()
      }
      mock.timers.tick(EGRESS_TICK_MS)
      assert.deepEqual(
        watched.map((it) => it.ticks),
        watched.map(() => 1),
      )
      timekeeper.stop()
    }),
  )
})

test('tick() comes also to those who are watched when others leave at theirs', () => {
  const timekeeper = new Timekeeper()
  const all = Array.from({ length: 10 }, (_, at) => new Clocked(timekeeper, at % 3 === 0))
  mock.timers.tick(EGRESS_TICK_MS)
  mock.timers.tick(EGRESS_TICK_MS)
  assert.deepEqual(
    all.map((it) => it.ticks),
    all.map((_, at) => (at % 3 === 0 ? 1 : 2)),
  )
  timekeeper.stop()
})

test('abortAll() ends all that is watched, and then nothing is watched any more', () => {
  const timekeeper = new Timekeeper()
  const all = Array.from({ length: 10 }, () => new Clocked(timekeeper))
  timekeeper.abortAll()
  mock.timers.tick(EGRESS_TICK_MS)
  assert.ok(all.every((it) => it.aborted && it.ticks === 0))
})

class Clocked implements Timed {
  slot = -1
  ticks = 0
  aborted = false
  readonly #timekeeper: Timekeeper
  readonly #leaves: boolean

  constructor(timekeeper: Timekeeper, leaves = false) {
    this.#timekeeper = timekeeper
    this.#leaves = leaves
    timekeeper.watch(this)
  }

  tick(): void {
    this.ticks += 1
    if (this.#leaves) this.leave()
  }

  abort(): void {
    this.aborted = true
    this.leave()
  }

  leave(): void {
    this.#timekeeper.leave(this)
  }
}
