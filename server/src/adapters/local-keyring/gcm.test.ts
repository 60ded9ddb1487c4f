import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { decrypt, encrypt, NONCE_BYTES } from './gcm.ts'

const KEY = createSecretKey(randomBytes(32))
const PREFIX = Uint8Array.of(1, 2)
const CONTEXT = Uint8Array.of(3)

test('encrypt() uses the nonce it is given, and decrypt() takes it from the message', () => {
  const nonces = [randomBytes(NONCE_BYTES), new Uint8Array(NONCE_BYTES).fill(9)]
  for (const nonce of nonces) {
    const message = encrypt(KEY, PREFIX, nonce, CONTEXT, 'it')
    assert.deepEqual([...message.subarray(0, 14)], [...PREFIX, ...nonce])
    assert.equal(decrypt(KEY, PREFIX.length, CONTEXT, message).toString(), 'it')
  }
})

test('encrypt() refuses a nonce that is not whole', () => {
  for (const length of [0, NONCE_BYTES - 1, NONCE_BYTES + 1]) {
    const given = (): Buffer => encrypt(KEY, PREFIX, randomBytes(length), CONTEXT, 'it')
    assert.throws(given, /nonce is not whole/)
  }
})
