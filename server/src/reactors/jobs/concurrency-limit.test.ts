import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  CALLBACKS_AT_ONCE,
  CALLBACKS_OF_ONE_AT_ONCE,
  CALLBACKS_TO_ONE_AT_ONCE,
  JOB_RUNS_AT_ONCE,
  JOB_RUNS_OF_ONE_AT_ONCE,
} from '../../base/limits.ts'
import { JobConcurrencyLimit } from './concurrency-limit.ts'

/** Acquires until a limit is reached; returns the releases, one per acquisition. */
function fill(acquire: (n: number) => (() => void) | null): (() => void)[] {
  const left: (() => void)[] = []
  for (let release = acquire(0); release !== null; release = acquire(left.length))
    left.push(release)
  return left
}

describe('JobConcurrencyLimit', () => {
  test('bounds callbacks to one receiver, of one tenant, and of all', () => {
    const limit = new JobConcurrencyLimit()
    const toOne = fill(() => limit.acquire('deliver', 'a', 'queue'))
    assert.equal(toOne.length, CALLBACKS_TO_ONE_AT_ONCE)
    assert.deepEqual(limit.fullQueues('deliver', 'a'), ['queue'])
    assert.deepEqual(limit.fullQueues('deliver', 'b'), [])
    const ofOne = fill((n) => limit.acquire('deliver', 'a', `queue ${n}`))
    assert.equal(toOne.length + ofOne.length, CALLBACKS_OF_ONE_AT_ONCE)
    const ofAll = fill((n) => limit.acquire('deliver', `tenant ${n}`, 'queue'))
    assert.equal(toOne.length + ofOne.length + ofAll.length, CALLBACKS_AT_ONCE)
  })

  test('bounds runs of one tenant and of all, whatever callbacks there are', () => {
    const limit = new JobConcurrencyLimit()
    fill((n) => limit.acquire('deliver', 'a', `queue ${n}`))
    const ofOne = fill(() => limit.acquire('run', 'a', ''))
    assert.equal(ofOne.length, JOB_RUNS_OF_ONE_AT_ONCE)
    const ofAll = fill((n) => limit.acquire('run', `tenant ${n}`, ''))
    assert.equal(ofOne.length + ofAll.length, JOB_RUNS_AT_ONCE)
  })

  test('keeps a delivery queue full for callbacks whatever else of that queue comes and goes', () => {
    const limit = new JobConcurrencyLimit()
    const callbacks = fill(() => limit.acquire('deliver', 'a', 'queue'))
    limit.acquire('dead', 'a', 'queue')!()
    assert.deepEqual(limit.fullQueues('deliver', 'a'), ['queue'])
    assert.deepEqual(limit.fullQueues('dead', 'a'), [])
    callbacks[0]!()
    assert.deepEqual(limit.fullQueues('deliver', 'a'), [])
  })

  test('has capacity again for each that was released', () => {
    const limit = new JobConcurrencyLimit()
    const [first, second] = fill(() => limit.acquire('deliver', 'a', 'queue'))
    first!()
    assert.deepEqual(limit.fullQueues('deliver', 'a'), [])
    assert.notEqual(limit.acquire('deliver', 'a', 'queue'), null)
    assert.equal(limit.acquire('deliver', 'a', 'queue'), null)
    second!()
    assert.notEqual(limit.acquire('deliver', 'a', 'queue'), null)
  })
})
