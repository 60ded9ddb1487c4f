import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { NONCE_BYTES } from './gcm.ts'
import { Nonces } from './nonces.ts'

test('next() gives no nonce twice, and every byte of each is drawn', () => {
  const nonces = new Nonces({ bytes: (length) => randomBytes(length) })
  const given = Array.from({ length: 10_000 }, () => Buffer.from(nonces.next()))
  assert.equal(new Set(given.map((it) => it.toString('hex'))).size, given.length)
  for (let at = 0; at < NONCE_BYTES; at++) {
    // Each of 256 values occurs about 39 times; missing more than ten of them takes a broken
    // generator.
    assert.ok(new Set(given.map((it) => it[at])).size > 246)
  }
})

test('next() gives the bytes in the order they were drawn, each once', () => {
  let count = 0
  const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, () => count++ % 251)
  const nonces = new Nonces({ bytes })
  const given = Array.from({ length: 200 }, () => [...nonces.next()]).flat()
  assert.deepEqual(
    given,
    Array.from(given, (_, at) => at % 251),
  )
})

test('next() never gives less than a whole nonce', () => {
  for (const length of [0, 1, NONCE_BYTES - 1, NONCE_BYTES + 1]) {
    const nonces = new Nonces({ bytes: () => new Uint8Array(length) })
    assert.throws(() => nonces.next(), /no whole nonce/)
    assert.throws(() => nonces.next(), /no whole nonce/)
  }
})
