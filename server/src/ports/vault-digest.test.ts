import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { VaultDigest } from './vault-digest.ts'
import type { VaultRow } from './vault-tables.ts'

const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.uint8Array(), fc.constant(null))
const rows = fc.array(fc.array(value, { minLength: 1 }))

test('VaultDigest is the same for the same rows, in whatever order', () => {
  fc.assert(
    fc.property(rows, (them) => {
      assert.equal(digestOf(them.toReversed()).sum, digestOf(them).sum)
      assert.equal(digestOf(them).rows, them.length)
    }),
  )
})

test('VaultDigest tells a value that moved, changed its kind, or is there twice', () => {
  const sums = [
    [],
    [['a', 'b']],
    [['ab', '']],
    [['', 'ab']],
    [['a'], ['b']],
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
    [[1, 'b']],
    [['1', 'b']],
    [[Buffer.from('1'), 'b']],
    [[true]],
    [['true']],
    [[null]],
    [['null']],
    [['t1:a']],
  ].map((it) => digestOf(it).sum)
  assert.equal(new Set(sums).size, sums.length)
})

test('VaultDigest tells whatever is not equal', () => {
  fc.assert(
    fc.property(fc.array(value), fc.array(value), (one, other) => {
      const alike = JSON.stringify(one.map(kindOf)) === JSON.stringify(other.map(kindOf))
      assert.equal(digestOf([one]).sum === digestOf([other]).sum, alike)
    }),
  )
})

function kindOf(it: VaultRow[number]): unknown {
  return it instanceof Uint8Array ? { bytes: [...it] } : Object.is(it, -0) ? 0 : it
}

function digestOf(them: readonly VaultRow[]): VaultDigest {
  const digest = new VaultDigest()
  for (const it of them) digest.add(it)
  return digest
}
