import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SystemClock } from './system-clock.ts'

test('now() is whole epoch milliseconds', () => {
  const now = new SystemClock().now()
  assert.ok(Number.isInteger(now))
  assert.ok(now > Date.UTC(2020, 0) && now < Date.UTC(2200, 0))
})

test('elapsed() never runs backwards', () => {
  const clock = new SystemClock()
  let before = clock.elapsed()
  for (let count = 0; count < 10_000; count += 1) {
    const after = clock.elapsed()
    assert.ok(after >= before)
    before = after
  }
})

test('yield() lets what the event loop holds ready go first', async () => {
  const order: string[] = []
  setImmediate(() => order.push('waiting'))
  await new SystemClock().yield()
  order.push('resumed')
  assert.deepEqual(order, ['waiting', 'resumed'])
})
