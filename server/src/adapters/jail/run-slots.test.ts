import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  REACTOR_RUNS_MAX,
  REACTOR_TENANT_RUNS_MAX,
  REACTOR_TENANT_WAITING_MAX,
  REACTOR_WAIT_MS_MAX,
} from '../../base/limits.ts'
import { createRunSlots } from './run-slots.ts'

test('run slots let one tenant wait while another runs', async () => {
  const slots = createRunSlots()
  fill(slots, 'tenant-a')
  const order: string[] = []
  const waiting = slots.acquire('tenant-a')!.acquired.then(() => order.push('tenant-a'))
  assert.equal(slots.acquire('tenant-b'), undefined)
  order.push('tenant-b')
  slots.release('tenant-a')
  await waiting
  assert.deepEqual(order, ['tenant-b', 'tenant-a'])
})

test('run slots let no more run than may in all', async () => {
  const slots = createRunSlots()
  const tenants = REACTOR_RUNS_MAX / REACTOR_TENANT_RUNS_MAX
  for (let it = 0; it < tenants; it++) fill(slots, `tenant-${it}`)
  let begun = false
  const waiting = slots.acquire('tenant-z')!.acquired.then(() => (begun = true))
  await new Promise((resolve) => void setImmediate(resolve))
  assert.equal(begun, false)
  slots.release('tenant-0')
  assert.equal(await waiting, true)
})

test('run slots refuse a tenant with too many waiting runs, and no other tenant', async (t) => {
  const slots = createRunSlots()
  fill(slots, 'tenant-a')
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const waiting = Array.from({ length: REACTOR_TENANT_WAITING_MAX }, () =>
    slots.acquire('tenant-a'),
  )
  assert.deepEqual([slots.hasCapacity('tenant-a'), slots.hasCapacity('tenant-b')], [false, true])
  await assert.rejects(slots.acquire('tenant-a')!.acquired, { name: 'RunnerBusy' })
  assert.equal(slots.acquire('tenant-b'), undefined)
  t.mock.timers.tick(REACTOR_WAIT_MS_MAX)
  const ends = await Promise.allSettled(waiting.map((it) => it!.acquired))
  assert.ok(ends.every((it) => it.status === 'rejected' && it.reason.name === 'RunnerBusy'))
})

/** Acquires all that one tenant may have. */
function fill(slots: ReturnType<typeof createRunSlots>, tenantId: string): void {
  for (let it = 0; it < REACTOR_TENANT_RUNS_MAX; it++) {
    assert.equal(slots.acquire(tenantId), undefined)
  }
}
