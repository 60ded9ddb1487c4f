import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { stillWorld } from '../../test/kit/still-world.ts'
import { APPLICATION_TYPES } from '../base/access.ts'
import {
  API_KEY_PATTERN,
  apiKeyLooksRight,
  hashApiKey,
  isSessionKey,
  makeApiKey,
  prefixOf,
} from './api-key.ts'

test('makeApiKey() says the kind of application in the key', () => {
  const { random } = stillWorld()
  assert.match(makeApiKey('private', random), /^key_local_pvt_[0-9A-Za-z]{38}$/)
  assert.match(makeApiKey('public', random), /^key_local_pub_[0-9A-Za-z]{38}$/)
  assert.match(makeApiKey('management', random), /^key_local_mgt_[0-9A-Za-z]{38}$/)
  assert.match(makeApiKey('session', random), /^key_local_sess_[0-9A-Za-z]{38}$/)
})

test('makeApiKey() uses every digit equally often', () => {
  const { random } = stillWorld()
  const counts = new Map<string, number>()
  const keys = 5_000
  for (let it = 0; it < keys; it++) {
    for (const digit of makeApiKey('private', random).slice(14, 46)) {
      counts.set(digit, (counts.get(digit) ?? 0) + 1)
    }
  }
  const expected = (keys * 32) / 62
  const chiSquared = [...counts.values()].reduce(
    (sum, it) => sum + (it - expected) ** 2 / expected,
    0,
  )
  assert.equal(counts.size, 62)
  // 61 degrees of freedom: above 112 once in ten thousand runs. Bytes modulo 62 would give thousands.
  assert.ok(chiSquared < 112, String(chiSquared))
})

test('makeApiKey() passes over the bytes that would favour some digits', () => {
  const bytes = (length: number): Uint8Array =>
    new Uint8Array(length).map((_, at) => 247 + (at % 2))
  assert.equal(makeApiKey('private', { bytes }).slice(14, 46), 'z'.repeat(32))
})

test('apiKeyLooksRight() is true of every key that was made', () => {
  const { random } = stillWorld()
  for (let it = 0; it < 1_000; it++) {
    assert.ok(apiKeyLooksRight(makeApiKey('public', random)))
    assert.ok(apiKeyLooksRight(makeApiKey('session', random)))
  }
})

test('isSessionKey() tells the key of a session from those of applications', () => {
  const { random } = stillWorld()
  assert.ok(isSessionKey(makeApiKey('session', random)))
  for (const type of APPLICATION_TYPES) assert.ok(!isSessionKey(makeApiKey(type, random)))
})

test('apiKeyLooksRight() is false when any one character was mistyped', () => {
  const key = makeApiKey('private', stillWorld().random)
  for (let at = 0; at < key.length; at++) {
    for (const digit of 'aZ0_-') {
      if (digit === key[at]) continue
      assert.equal(apiKeyLooksRight(key.slice(0, at) + digit + key.slice(at + 1)), false)
    }
  }
})

test('apiKeyLooksRight() is false of anything else', () => {
  const key = makeApiKey('private', stillWorld().random)
  for (const it of ['', key.slice(1), `${key}0`, ` ${key}`, `${key}\n`, key.toUpperCase()]) {
    assert.equal(apiKeyLooksRight(it), false, JSON.stringify(it))
  }
  fc.assert(fc.property(fc.string(), (it) => !apiKeyLooksRight(it)))
  fc.assert(fc.property(fc.stringMatching(API_KEY_PATTERN), (it) => !apiKeyLooksRight(it)))
})

test('hashApiKey() is the SHA-256 of the key', () => {
  assert.equal(
    hashApiKey('abc').toString('hex'),
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
})

test('prefixOf() tells the kind and 4 characters, no more', () => {
  const key = makeApiKey('management', stillWorld().random)
  assert.equal(prefixOf(key), key.slice(0, 18))
})
