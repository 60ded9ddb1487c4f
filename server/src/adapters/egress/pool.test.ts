import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EGRESS_CONNECTIONS_MAX, EGRESS_WAITING_MAX } from '../../base/limits.ts'
import { Pool } from './pool.ts'

test('a call that leaves after its slot was released to it passes the slot on', async () => {
  const { pool, begun, call } = stage()
  const leaving = call('leaving')
  const next = call('next')
  pool.admit(leaving)
  pool.admit(next)
  pool.release(null)
  pool.leave(leaving)
  await settled()
  assert.deepEqual(begun, ['next'])
})

test('a call that leaves the queue never begins, and makes room for another', async () => {
  const { pool, begun, call, failed } = stage()
  const leaving = call('leaving')
  pool.admit(leaving)
  for (let it = 1; it < EGRESS_WAITING_MAX; it++) pool.admit(call('next'))
  pool.leave(leaving)
  pool.admit(call('last'))
  pool.admit(call('one too many'))
  await settled()
  assert.deepEqual(failed, ['one too many'])
  assert.deepEqual(begun, [])
  pool.release(null)
  await settled()
  assert.deepEqual(begun, ['next'])
})

/** A pool that is full. */
function stage() {
  const begun: string[] = []
  const failed: string[] = []
  const call = (name: string) => ({
    begin: () => void begun.push(name),
    fail: () => void failed.push(name),
  })
  // None of these is used before a connection is made.
  const [target, settings, options, history] = [{}, {}, {}, {}] as ConstructorParameters<
    typeof Pool
  >
  const pool = new Pool(target, settings, options, history)
  for (let it = 0; it < EGRESS_CONNECTIONS_MAX; it++) pool.admit(call('first'))
  assert.equal(begun.splice(0).length, EGRESS_CONNECTIONS_MAX)
  return { pool, begun, failed, call }
}

/** Resolves once all pending promise callbacks have run. */
async function settled(): Promise<void> {
  for (let it = 0; it < 10; it++) await Promise.resolve()
}
