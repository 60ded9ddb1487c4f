import assert from 'node:assert/strict'
import { test } from 'node:test'
import { takeWithin } from './take-within.ts'

test('takeWithin() takes the item with which it is enough, and reads no further', () => {
  let read = 0
  function* items(): Iterable<number> {
    for (const it of [1, 0, 3, 5, 8]) {
      read++
      yield it
    }
  }
  const cases: [enough: number, taken: number[], isCut: boolean][] = [
    [0, [1], true],
    [1, [1], true],
    [2, [1, 0, 3], true],
    [4, [1, 0, 3], true],
    [5, [1, 0, 3, 5], true],
    [17, [1, 0, 3, 5, 8], true],
    [18, [1, 0, 3, 5, 8], false],
  ]
  for (const [enough, taken, isCut] of cases) {
    read = 0
    assert.deepEqual(
      takeWithin(items(), (it) => it, enough),
      { taken, isCut },
    )
    assert.equal(read, taken.length)
  }
})
