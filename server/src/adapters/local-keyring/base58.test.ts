import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { base58Of } from './base58.ts'

test('base58Of() is the number in base 58, always 44 digits', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      assert.equal(base58Of(bytes), longhand(bytes))
    }),
    { numRuns: 1000 },
  )
})

test('base58Of() of the least and the greatest number', () => {
  assert.equal(base58Of(new Uint8Array(32)), '1'.repeat(44))
  assert.equal(
    base58Of(new Uint8Array(32).fill(255)),
    'JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG',
  )
})

test('base58Of() takes 32 bytes and nothing else', () => {
  for (const length of [0, 31, 33]) assert.throws(() => base58Of(new Uint8Array(length)))
})

function longhand(bytes: Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let text = ''
  while (text.length < 44) {
    text = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'[Number(rest % 58n)]! + text
    rest /= 58n
  }
  return text
}
