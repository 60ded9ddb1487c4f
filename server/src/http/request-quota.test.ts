import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import type { Principal } from '../base/access.ts'
import {
  BODY_BYTES_MAX,
  LARGE_BYTES_MIN,
  LARGE_READS_AT_ONCE,
  QUOTA_BYTES_MAX,
} from '../base/limits.ts'
import { createTenantQuotas, RequestQuota, type TenantQuotas } from './request-quota.ts'

const OWNER = 'tenant private'

describe('RequestQuota.acquireLargeRead()', () => {
  test('is for a few at a time, and given back when the request is handled', async () => {
    const tenantQuotas = still()
    const quotas = Array.from({ length: LARGE_READS_AT_ONCE }, () => quotaIn(tenantQuotas).quota)
    for (const it of quotas) await it.acquireLargeRead(false)
    const late = quotaIn(tenantQuotas).quota
    const acquired = late.acquireLargeRead(false)
    assert.equal(await isSettled(acquired), false)
    quotas[0]!.handled()
    await acquired
    for (const it of [...quotas, late]) it.handled()
    assert.equal(tenantQuotas.large.isHeld(OWNER), false)
  })

  test('comes to nothing once the request is handled, whether it waited or not', async () => {
    const tenantQuotas = still()
    const quotas = Array.from({ length: LARGE_READS_AT_ONCE }, () => quotaIn(tenantQuotas).quota)
    for (const it of quotas) await it.acquireLargeRead(false)
    const waiting = quotaIn(tenantQuotas).quota
    const acquired = waiting.acquireLargeRead(false)
    waiting.handled()
    for (const it of quotas) it.handled()
    await acquired
    await quotas[0]!.acquireLargeRead(false)
    assert.equal(tenantQuotas.large.isHeld(OWNER), false)
  })

  test('is one slot, however often it is asked for at once', async () => {
    const tenantQuotas = still()
    const quotas = Array.from({ length: LARGE_READS_AT_ONCE }, () => quotaIn(tenantQuotas).quota)
    for (const it of quotas) await it.acquireLargeRead(false)
    const { quota } = quotaIn(tenantQuotas)
    const acquired = [
      quota.acquireLargeRead(false),
      quota.acquireLargeRead(false),
      quota.acquireLargeRead(true),
    ]
    for (const it of quotas) it.handled()
    await Promise.all(acquired)
    quota.handled()
    assert.equal(tenantQuotas.large.isHeld(OWNER), false)
  })

  test('waits for what others made only where it makes something for a destination itself', async () => {
    const tenantQuotas = still()
    const sender = quotaIn(tenantQuotas)
    await sender.quota.acquireLargeRead(true)
    sender.quota.releaseLargeRead(QUOTA_BYTES_MAX + 1)
    await quotaIn(tenantQuotas).quota.acquireLargeRead(false)
    const acquired = quotaIn(tenantQuotas).quota.acquireLargeRead(true)
    assert.equal(await isSettled(acquired), false)
    sender.quota.handled()
    sender.response.emit('close')
    await acquired
    assert.equal(tenantQuotas.made.isHeld(OWNER), false)
  })

  test('keeps nothing of what is made when the client is gone', async () => {
    const tenantQuotas = still()
    const { quota, response } = quotaIn(tenantQuotas)
    await quota.acquireLargeRead(true)
    quota.handled()
    response.emit('close')
    quota.releaseLargeRead(LARGE_BYTES_MIN)
    assert.equal(tenantQuotas.made.isHeld(OWNER), false)
    assert.equal(tenantQuotas.large.isHeld(OWNER), false)
  })
})

test('unauthorized sessions share the quota of public keys', () => {
  const tenantQuotas = still()
  const reserve = (principal: object): boolean => {
    const { quota } = quotaIn(tenantQuotas, principal)
    return quota.reserveBody(BODY_BYTES_MAX) === undefined
  }
  const times = Math.floor(QUOTA_BYTES_MAX / BODY_BYTES_MAX)
  const outcomes = Array.from({ length: times + 1 }, (_, n) =>
    reserve({ type: 'session', keyId: `session-${n}` }),
  )
  assert.deepEqual(outcomes, [...Array<boolean>(times).fill(true), false])
  assert.equal(reserve({ type: 'public' }), false)
  assert.equal(reserve({ type: 'private' }), true)
  assert.equal(reserve({ type: 'session', keyId: 'authorized', grantorId: 'application' }), true)
})

/** Quotas whose waits never time out. */
function still(): TenantQuotas {
  return createTenantQuotas({ after: () => new Promise(() => {}) })
}

function quotaIn(
  tenantQuotas: TenantQuotas,
  caller: object = { type: 'private' },
): {
  readonly quota: RequestQuota
  readonly response: EventEmitter
} {
  const response = Object.assign(new EventEmitter(), { closed: false })
  const principal = { tenantId: 'tenant', ...caller } as Principal
  return {
    quota: new RequestQuota(tenantQuotas, response as unknown as ServerResponse, principal),
    response,
  }
}

/** Whether the promise is settled once all pending callbacks have run. */
async function isSettled(promise: Promise<void>): Promise<boolean> {
  let settled = false
  void promise.then(() => (settled = true))
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  return settled
}
