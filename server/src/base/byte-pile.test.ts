import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { BytePile } from './byte-pile.ts'

test('whole() returns what was added, in order', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (pieces) => {
      const pile = new BytePile()
      for (const it of pieces) pile.add(it)
      assert.deepEqual(pile.whole(), Buffer.concat(pieces))
      assert.equal(pile.length, pile.whole().length)
    }),
  )
})

test('whole() stays what it was when more is added', () => {
  const pile = new BytePile()
  for (const byte of Buffer.from('abcde')) pile.add(Uint8Array.of(byte))
  const before = pile.whole()
  for (const byte of Buffer.from('fghij')) pile.add(Uint8Array.of(byte))
  assert.equal(before.toString(), 'abcde')
  assert.equal(pile.whole().toString(), 'abcdefghij')
})
