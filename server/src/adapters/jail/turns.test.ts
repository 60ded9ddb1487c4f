import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  REACTOR_RUNS_MAX,
  REACTOR_TENANT_RUNS_MAX,
  REACTOR_TENANT_WAITING_MAX,
  REACTOR_WAIT_MS_MAX,
} from '../../base/limits.ts'
import { Turns } from './turns.ts'

test('take() lets one tenant wait while another runs', async () => {
  const turns = new Turns()
  const mine = await take(turns, 'tenant-a', REACTOR_TENANT_RUNS_MAX)
  const order: string[] = []
  const waiting = turns.take('tenant-a').then((leave) => {
    order.push('tenant-a')
    return leave
  })
  const theirs = await turns.take('tenant-b')
  order.push('tenant-b')
  mine[0]!()
  ;(await waiting)()
  theirs()
  assert.deepEqual(order, ['tenant-b', 'tenant-a'])
})

test('take() lets no more run than may in all', async () => {
  const turns = new Turns()
  const tenants = REACTOR_RUNS_MAX / REACTOR_TENANT_RUNS_MAX
  const all = await Promise.all(
    Array.from({ length: tenants }, (_, it) =>
      take(turns, `tenant-${it}`, REACTOR_TENANT_RUNS_MAX),
    ),
  )
  let begun = false
  const waiting = turns.take('tenant-z').then(() => (begun = true))
  await new Promise((resolve) => void setImmediate(resolve))
  assert.equal(begun, false)
  all[0]![0]!()
  assert.equal(await waiting, true)
})

test('take() refuses a tenant of whom too many wait, and nobody else', async (t) => {
  const turns = new Turns()
  await take(turns, 'tenant-a', REACTOR_TENANT_RUNS_MAX)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const waiting = Array.from({ length: REACTOR_TENANT_WAITING_MAX }, () => turns.take('tenant-a'))
  assert.deepEqual([turns.hasCapacity('tenant-a'), turns.hasCapacity('tenant-b')], [false, true])
  await assert.rejects(turns.take('tenant-a'), { name: 'RunnerBusy' })
  await turns.take('tenant-b')
  t.mock.timers.tick(REACTOR_WAIT_MS_MAX)
  const ends = await Promise.allSettled(waiting)
  assert.ok(ends.every((it) => it.status === 'rejected'))
})

test('a turn that is given back twice is given back once', async () => {
  const turns = new Turns()
  const [leave, next] = await take(turns, 'tenant-a', REACTOR_TENANT_RUNS_MAX)
  leave!()
  leave!()
  await turns.take('tenant-a')
  let begun = false
  const waiting = turns.take('tenant-a').then(() => (begun = true))
  await new Promise((resolve) => void setImmediate(resolve))
  assert.equal(begun, false)
  next!()
  assert.equal(await waiting, true)
})

function take(turns: Turns, tenantId: string, count: number): Promise<(() => void)[]> {
  return Promise.all(Array.from({ length: count }, () => turns.take(tenantId)))
}
