import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kept } from './session.ts'

test('kept() gives another name to another text, so that no version ever runs the statement of another', () => {
  const [one, other] = [kept('find', 'SELECT 1'), kept('find', 'SELECT 2')]
  assert.notEqual(one.name, other.name)
  assert.deepEqual(kept('find', 'SELECT 1'), one)
  // The database truncates longer names, which could then collide.
  assert.ok(kept('insert-plain-tokens', 'SELECT 1').name.length < 64)
})
