import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  EGRESS_DIALLED_HOSTS_MAX,
  EGRESS_DIALS_AT_ONCE,
  EGRESS_DIALS_PER_S,
  EGRESS_FAILED_DIALS,
  EGRESS_FAILED_DIALS_OF_HOST,
  EGRESS_TUNNELS_MAX,
  EGRESS_TUNNELS_OF_ONE_MAX,
} from '../../base/limits.ts'
import { TunnelLimits } from './tunnel-limits.ts'

describe('TunnelLimits', () => {
  test('one owner has so many open, and another has its own', () => {
    const { limits } = stage()
    const leases = times(EGRESS_TUNNELS_OF_ONE_MAX, (n) => limits.acquire('a', `${n}.test`))
    assert.throws(() => limits.acquire('a', 'other.test'), limit(/tenant's reactors have 256 open/))
    limits.acquire('b', 'other.test')
    leases[0]!.release()
    limits.acquire('a', 'other.test')
    assert.throws(() => limits.acquire('a', 'other.test'), limit(/256/))
  })

  test('all owners have so many open together', () => {
    const { limits } = stage()
    const leases = times(EGRESS_TUNNELS_MAX, (n) => limits.acquire(`owner-${n}`, 'a.test'))
    assert.throws(() => limits.acquire('other', 'a.test'), limit(/1024 open in all/))
    leases[0]!.release()
    limits.acquire('other', 'a.test')
  })

  test('one owner dials a host so often, and again later', () => {
    const { limits, clock } = stage()
    times(EGRESS_DIALS_AT_ONCE, () => limits.acquire('a', 'a.test').release())
    assert.throws(() => limits.acquire('a', 'a.test'), limit(/more than 200 a second/))
    limits.acquire('a', 'b.test').release()
    limits.acquire('b', 'a.test').release()
    clock.now += 1_000
    times(EGRESS_DIALS_PER_S, () => limits.acquire('a', 'a.test').release())
    assert.throws(() => limits.acquire('a', 'a.test'), limit(/more than 200 a second/))
  })

  test('dials of a host may fail so often in a minute', () => {
    const { limits, clock } = stage()
    const fail = (): void => {
      const lease = limits.acquire('a', 'a.test')
      lease.noteFailure()
      lease.release()
    }
    times(EGRESS_FAILED_DIALS_OF_HOST, fail)
    assert.throws(fail, limit(/to this host failed/))
    limits.acquire('a', 'b.test').release()
    limits.acquire('b', 'a.test').release()
    clock.now += 60_000 / EGRESS_FAILED_DIALS_OF_HOST
    fail()
    assert.throws(fail, limit(/to this host failed/))
  })

  test('dials of many hosts may fail so often in a minute', () => {
    const { limits, clock } = stage()
    const fail = (n: number): void => {
      const lease = limits.acquire('a', `${n}.test`)
      lease.noteFailure()
      lease.release()
    }
    times(EGRESS_FAILED_DIALS, fail)
    assert.throws(() => fail(-1), limit(/Too many connections failed/))
    limits.acquire('b', 'a.test').release()
    clock.now += 60_000
    times(EGRESS_FAILED_DIALS, fail)
    assert.throws(() => fail(-1), limit(/Too many connections failed/))
  })

  test('hosts that are not dialled any more are forgotten, the oldest first', () => {
    const { limits } = stage()
    times(EGRESS_DIALS_AT_ONCE, () => limits.acquire('a', 'a.test').release())
    times(EGRESS_DIALLED_HOSTS_MAX - 1, (n) => limits.acquire('b', `${n}.test`).release())
    assert.throws(() => limits.acquire('a', 'a.test'), limit(/a second/))
    limits.acquire('b', 'last.test').release()
    limits.acquire('a', 'a.test').release()
  })
})

function stage() {
  const clock = { now: 1_000 }
  return { limits: new TunnelLimits(() => clock.now), clock }
}

function limit(message: RegExp) {
  return { name: 'EgressLimitReached', message }
}

function times<Result>(count: number, make: (n: number) => Result): Result[] {
  return Array.from({ length: count }, (_, n) => make(n))
}
