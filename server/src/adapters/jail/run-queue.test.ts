import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  REACTOR_RUNS_MAX,
  REACTOR_TENANT_RUNS_MAX,
  REACTOR_TENANT_WAITING_MAX,
  REACTOR_WAIT_MS_MAX,
} from '../../base/limits.ts'
import { RunQueue } from './run-queue.ts'

test('acquire() lets one tenant wait while another runs', async () => {
  const queue = new RunQueue()
  const mine = await acquire(queue, 'tenant-a', REACTOR_TENANT_RUNS_MAX)
  const order: string[] = []
  const waiting = queue.acquire('tenant-a').then((release) => {
    order.push('tenant-a')
    return release
  })
  const theirs = await queue.acquire('tenant-b')
  order.push('tenant-b')
  mine[0]!()
  ;(await waiting)()
  theirs()
  assert.deepEqual(order, ['tenant-b', 'tenant-a'])
})

test('acquire() lets no more run than may in all', async () => {
  const queue = new RunQueue()
  const tenants = REACTOR_RUNS_MAX / REACTOR_TENANT_RUNS_MAX
  const all = await Promise.all(
    Array.from({ length: tenants }, (_, it) =>
      acquire(queue, `tenant-${it}`, REACTOR_TENANT_RUNS_MAX),
    ),
  )
  let begun = false
  const waiting = queue.acquire('tenant-z').then(() => (begun = true))
  await new Promise((resolve) => void setImmediate(resolve))
  assert.equal(begun, false)
  all[0]![0]!()
  assert.equal(await waiting, true)
})

test('acquire() refuses a tenant with too many waiting runs, and no other tenant', async (t) => {
  const queue = new RunQueue()
  await acquire(queue, 'tenant-a', REACTOR_TENANT_RUNS_MAX)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const waiting = Array.from({ length: REACTOR_TENANT_WAITING_MAX }, () =>
    queue.acquire('tenant-a'),
  )
  assert.deepEqual([queue.hasCapacity('tenant-a'), queue.hasCapacity('tenant-b')], [false, true])
  await assert.rejects(queue.acquire('tenant-a'), { name: 'RunnerBusy' })
  await queue.acquire('tenant-b')
  t.mock.timers.tick(REACTOR_WAIT_MS_MAX)
  const ends = await Promise.allSettled(waiting)
  assert.ok(ends.every((it) => it.status === 'rejected'))
})

test('a slot that is released twice is released once', async () => {
  const queue = new RunQueue()
  const [release, next] = await acquire(queue, 'tenant-a', REACTOR_TENANT_RUNS_MAX)
  release!()
  release!()
  await queue.acquire('tenant-a')
  let begun = false
  const waiting = queue.acquire('tenant-a').then(() => (begun = true))
  await new Promise((resolve) => void setImmediate(resolve))
  assert.equal(begun, false)
  next!()
  assert.equal(await waiting, true)
})

function acquire(queue: RunQueue, tenantId: string, count: number): Promise<(() => void)[]> {
  return Promise.all(Array.from({ length: count }, () => queue.acquire(tenantId)))
}
