import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { KeyedSemaphore } from './keyed-semaphore.ts'

/** Acquires for `owner`, and adds its name to `begun` once it has acquired. */
function acquirer(semaphore: KeyedSemaphore, begun: string[]) {
  return (owner: string, amount: number, name: string): void => {
    const waiting = semaphore.acquire(owner, amount)
    if (waiting === undefined) begun.push(name)
    else
      void waiting.acquired.then(
        () => begun.push(name),
        () => begun.push(`${name} no more`),
      )
  }
}

/** Resolves once all pending promise callbacks have run. */
async function settled(): Promise<void> {
  for (let it = 0; it < 20; it++) await Promise.resolve()
}

describe('KeyedSemaphore', () => {
  test('owners wait for themselves alone, first come, first served', async () => {
    const semaphore = new KeyedSemaphore(10, 10, null)
    const begun: string[] = []
    const acquire = acquirer(semaphore, begun)
    acquire('a', 6, 'a1')
    acquire('a', 6, 'a2')
    acquire('a', 1, 'a3')
    acquire('b', 10, 'b1')
    await settled()
    assert.deepEqual(begun, ['a1', 'b1'])
    semaphore.release('a', 6)
    await settled()
    assert.deepEqual(begun, ['a1', 'b1', 'a2', 'a3'])
  })

  test('more than the limit is acquired when nothing is held', async () => {
    const semaphore = new KeyedSemaphore(10, 10, null)
    const begun: string[] = []
    const acquire = acquirer(semaphore, begun)
    acquire('a', 1, 'a1')
    acquire('a', 30, 'a2')
    await settled()
    assert.equal(semaphore.isOverLimit('a'), false)
    semaphore.release('a', 1)
    await settled()
    assert.deepEqual(begun, ['a1', 'a2'])
    assert.equal(semaphore.isOverLimit('a'), true)
  })

  test('a waiter whose time is up takes nothing, and blocks no other', async () => {
    const tired: (() => void)[] = []
    const semaphore = new KeyedSemaphore(
      10,
      10,
      () => new Promise((resolve) => void tired.push(resolve)),
    )
    const begun: string[] = []
    const acquire = acquirer(semaphore, begun)
    acquire('a', 6, 'a1')
    acquire('a', 6, 'a2')
    acquire('a', 4, 'a3')
    tired[0]!()
    await settled()
    assert.deepEqual(begun, ['a1', 'a2 no more', 'a3'])
    semaphore.release('a', 6)
    semaphore.release('a', 4)
    assert.equal(semaphore.acquire('a', 10), undefined)
  })

  test('a waiter that leaves blocks no other either, and the number of waiters is bounded', async () => {
    const semaphore = new KeyedSemaphore(10, 2, null)
    const begun: string[] = []
    semaphore.acquire('a', 6)
    const waiting = semaphore.acquire('a', 6)!
    acquirer(semaphore, begun)('a', 4, 'a2')
    await assert.rejects(semaphore.acquire('a', 4)!.acquired, { code: 'tenant_busy' })
    waiting.leave(new Error('gone'))
    await assert.rejects(waiting.acquired, /gone/)
    assert.deepEqual(begun, ['a2'])
    waiting.leave(new Error('gone again'))
    semaphore.release('a', 10)
    assert.equal(semaphore.isHeld('a'), false)
  })

  test('what is there already counts, and those who come wait for it', async () => {
    const semaphore = new KeyedSemaphore(10, 10, null)
    const begun: string[] = []
    semaphore.forceAcquire('a', 11)
    assert.equal(semaphore.isOverLimit('a'), true)
    acquirer(semaphore, begun)('a', 0, 'a1')
    await settled()
    assert.deepEqual(begun, [])
    semaphore.release('a', 11)
    await settled()
    assert.deepEqual(begun, ['a1'])
  })
})
