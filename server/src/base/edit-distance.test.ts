import assert from 'node:assert/strict'
import { test } from 'node:test'
import { editDistance, nearestOf } from './edit-distance.ts'

test('editDistance() counts insertions, deletions, replacements and swaps, in both directions', () => {
  const cases: [a: string, b: string, distance: number][] = [
    ['', '', 0],
    ['', 'ab', 2],
    ['port', 'port', 0],
    ['prot', 'port', 1],
    ['ports', 'port', 1],
    ['pot', 'port', 1],
    ['part', 'port', 1],
    ['roto', 'port', 3],
    ['ab', 'ba', 1],
    ['abcd', 'badc', 2],
    // No part is edited twice: otherwise a swap and an insertion between would be two edits.
    ['ca', 'abc', 3],
  ]
  for (const [a, b, distance] of cases) {
    assert.equal(editDistance(a, b), distance, `${a}, ${b}`)
    assert.equal(editDistance(b, a), distance, `${b}, ${a}`)
  }
})

test('nearestOf() returns the nearest words, none further than two edits', () => {
  const words = ['host', 'port', 'metrics-port']
  assert.deepEqual(nearestOf('prot', words), ['port'])
  assert.deepEqual(nearestOf('post', words), ['host', 'port'])
  assert.deepEqual(nearestOf('xport', words), ['port'])
  assert.deepEqual(nearestOf('xyport', words), ['port'])
  assert.deepEqual(nearestOf('xyzport', words), [])
})
