import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { LIMITED_ADDRESSES_MAX, LIMITS_LOGGED_MS } from '../base/limits.ts'
import { createRequestLimits, RequestLimits } from './request-limits.ts'

describe('RequestLimits', () => {
  test('refuses a key over its limit from whichever address, and says when to try again', () => {
    const limits = new RequestLimits({ perKey: 2, perAddress: 10 })
    for (const address of ['1', '2']) assert.equal(limits.admit('key', address, 0), null)
    const refused = { limit: 'key', retryAfterS: 30, toLog: true }
    assert.deepEqual(limits.admit('key', '3', 0), refused)
    assert.deepEqual(limits.admit('key', '3', 1), { ...refused, toLog: false })
    assert.equal(limits.admit('other', '1', 1), null)
    assert.equal(limits.admit('key', '3', 30_000), null)
  })

  test('refuses an address with a key over its limit, and leaves other addresses and keys alone', () => {
    const limits = new RequestLimits({ perKey: null, perAddress: 1 })
    assert.equal(limits.admit('key', '1', 0), null)
    const refused = { limit: 'address', retryAfterS: 60, toLog: true }
    assert.deepEqual(limits.admit('key', '1', 0), refused)
    assert.equal(limits.admit('key', '2', 0), null)
    assert.equal(limits.admit('other', '1', 0), null)
    assert.equal(limits.admit('key', null, 0), null)
  })

  test('counts what one limit refuses towards neither', () => {
    const limits = new RequestLimits({ perKey: 2, perAddress: 1 })
    for (let count = 0; count < 5; count++) limits.admit('key', '1', 0)
    assert.equal(limits.admit('key', '2', 0), null)
    assert.equal(limits.admit('key', '3', 0)?.limit, 'key')
    // The key's limit allows another one after half a minute, which 3 has not used.
    assert.equal(limits.admit('key', '3', 30_000), null)
  })

  test('names the address if both limits are exceeded, and the longer wait', () => {
    const limits = new RequestLimits({ perKey: 2, perAddress: 1 })
    limits.admit('key', '1', 0)
    for (const address of ['2', '3']) limits.admit('key', address, 50_000)
    const refused = { limit: 'address', retryAfterS: 30, toLog: true }
    assert.deepEqual(limits.admit('key', '1', 50_000), refused)
    assert.equal(limits.admit('key', '4', 50_000)?.limit, 'key')
  })

  test('is to be logged once per key and minute, however many are refused by whichever limit', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20_000), { maxLength: 200 }), (gaps) => {
        const limits = new RequestLimits({ perKey: 3, perAddress: 1 })
        let now = 0
        const logged = gaps.flatMap((gap, at) => {
          now += gap
          return limits.admit('key', String(at % 4), now)?.toLog === true ? [now] : []
        })
        for (const [at, time] of logged.entries()) {
          if (at > 0) assert.ok(time - logged[at - 1]! >= LIMITS_LOGGED_MS)
        }
      }),
    )
  })

  test('keeps the count of a key, however many addresses others are used from', () => {
    const perKey = 1_500
    const limits = new RequestLimits({ perKey, perAddress: 1 })
    for (let count = 0; count < perKey; count++) limits.admit('key', String(count), 0)
    for (let count = 0; count <= LIMITED_ADDRESSES_MAX; count++) {
      assert.equal(limits.admit(`other ${count % 100}`, String(count), 0), null)
    }
    assert.equal(limits.admit('key', 'new', 0)?.limit, 'key')
    // The address that was quiet for longest is forgotten instead, and no other.
    assert.equal(limits.admit('other 0', '100', 0)?.limit, 'address')
    assert.equal(limits.admit('other 0', '0', 0), null)
  })
})

test('createRequestLimits() makes nothing if there is no limit', () => {
  assert.equal(createRequestLimits({ perKey: null, perAddress: null }), null)
  assert.equal(createRequestLimits({ perKey: 1, perAddress: null })?.countsAddresses, false)
  assert.equal(createRequestLimits({ perKey: null, perAddress: 1 })?.countsAddresses, true)
})
