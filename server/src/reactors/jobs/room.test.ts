import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  CALLBACKS_AT_ONCE,
  CALLBACKS_OF_ONE_AT_ONCE,
  CALLBACKS_TO_ONE_AT_ONCE,
  JOB_RUNS_AT_ONCE,
  JOB_RUNS_OF_ONE_AT_ONCE,
} from '../../base/limits.ts'
import { Room } from './room.ts'

/** Enters until there is no room; returns how many there were, and how to leave. */
function fill(enter: (n: number) => (() => void) | null): (() => void)[] {
  const left: (() => void)[] = []
  for (let leave = enter(0); leave !== null; leave = enter(left.length)) left.push(leave)
  return left
}

describe('Room', () => {
  test('bounds callbacks to one receiver, of one tenant, and of all', () => {
    const room = new Room()
    const toOne = fill(() => room.enter('deliver', 'a', 'lane'))
    assert.equal(toOne.length, CALLBACKS_TO_ONE_AT_ONCE)
    assert.deepEqual(room.fullLanes('deliver', 'a'), ['lane'])
    assert.deepEqual(room.fullLanes('deliver', 'b'), [])
    const ofOne = fill((n) => room.enter('deliver', 'a', `lane ${n}`))
    assert.equal(toOne.length + ofOne.length, CALLBACKS_OF_ONE_AT_ONCE)
    const ofAll = fill((n) => room.enter('deliver', `tenant ${n}`, 'lane'))
    assert.equal(toOne.length + ofOne.length + ofAll.length, CALLBACKS_AT_ONCE)
  })

  test('bounds runs of one tenant and of all, whatever callbacks there are', () => {
    const room = new Room()
    fill((n) => room.enter('deliver', 'a', `lane ${n}`))
    const ofOne = fill(() => room.enter('run', 'a', ''))
    assert.equal(ofOne.length, JOB_RUNS_OF_ONE_AT_ONCE)
    const ofAll = fill((n) => room.enter('run', `tenant ${n}`, ''))
    assert.equal(ofOne.length + ofAll.length, JOB_RUNS_AT_ONCE)
  })

  test('keeps a lane full for callbacks whatever else of that lane comes and goes', () => {
    const room = new Room()
    const callbacks = fill(() => room.enter('deliver', 'a', 'lane'))
    room.enter('dead', 'a', 'lane')!()
    assert.deepEqual(room.fullLanes('deliver', 'a'), ['lane'])
    assert.deepEqual(room.fullLanes('dead', 'a'), [])
    callbacks[0]!()
    assert.deepEqual(room.fullLanes('deliver', 'a'), [])
  })

  test('has room again for each that has left', () => {
    const room = new Room()
    const [first, second] = fill(() => room.enter('deliver', 'a', 'lane'))
    first!()
    assert.deepEqual(room.fullLanes('deliver', 'a'), [])
    assert.notEqual(room.enter('deliver', 'a', 'lane'), null)
    assert.equal(room.enter('deliver', 'a', 'lane'), null)
    second!()
    assert.notEqual(room.enter('deliver', 'a', 'lane'), null)
  })
})
