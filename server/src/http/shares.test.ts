import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Shares } from './shares.ts'

/** Takes for `owner`, and says in `begun` when it has it. */
function taker(shares: Shares, begun: string[]) {
  return (owner: string, amount: number, name: string): void => {
    const waiting = shares.take(owner, amount)
    if (waiting === undefined) begun.push(name)
    else
      void waiting.taken.then(
        () => begun.push(name),
        () => begun.push(`${name} no more`),
      )
  }
}

/** Resolves when what only waited for others is done. */
async function settled(): Promise<void> {
  for (let it = 0; it < 20; it++) await Promise.resolve()
}

describe('Shares', () => {
  test('owners wait for themselves alone, first come, first served', async () => {
    const shares = new Shares(10, 10, null)
    const begun: string[] = []
    const take = taker(shares, begun)
    take('a', 6, 'a1')
    take('a', 6, 'a2')
    take('a', 1, 'a3')
    take('b', 10, 'b1')
    await settled()
    assert.deepEqual(begun, ['a1', 'b1'])
    shares.give('a', 6)
    await settled()
    assert.deepEqual(begun, ['a1', 'b1', 'a2', 'a3'])
  })

  test('more than a share is had when nothing of it is taken', async () => {
    const shares = new Shares(10, 10, null)
    const begun: string[] = []
    const take = taker(shares, begun)
    take('a', 1, 'a1')
    take('a', 30, 'a2')
    await settled()
    assert.equal(shares.isOver('a'), false)
    shares.give('a', 1)
    await settled()
    assert.deepEqual(begun, ['a1', 'a2'])
    assert.equal(shares.isOver('a'), true)
  })

  test('whoever has waited for long enough takes nothing, and stands in nobody’s way', async () => {
    const tired: (() => void)[] = []
    const shares = new Shares(10, 10, () => new Promise((resolve) => void tired.push(resolve)))
    const begun: string[] = []
    const take = taker(shares, begun)
    take('a', 6, 'a1')
    take('a', 6, 'a2')
    take('a', 4, 'a3')
    tired[0]!()
    await settled()
    assert.deepEqual(begun, ['a1', 'a2 no more', 'a3'])
    shares.give('a', 6)
    shares.give('a', 4)
    assert.equal(shares.take('a', 10), undefined)
  })

  test('whoever leaves stands in nobody’s way either, and no more than so many wait', async () => {
    const shares = new Shares(10, 2, null)
    const begun: string[] = []
    shares.take('a', 6)
    const waiting = shares.take('a', 6)!
    taker(shares, begun)('a', 4, 'a2')
    await assert.rejects(shares.take('a', 4)!.taken, { code: 'tenant_busy' })
    waiting.leave(new Error('gone'))
    await assert.rejects(waiting.taken, /gone/)
    assert.deepEqual(begun, ['a2'])
    waiting.leave(new Error('gone again'))
    shares.give('a', 10)
    assert.equal(shares.isTaken('a'), false)
  })

  test('what is there already counts, and those who come wait for it', async () => {
    const shares = new Shares(10, 10, null)
    const begun: string[] = []
    shares.add('a', 11)
    assert.equal(shares.isOver('a'), true)
    taker(shares, begun)('a', 0, 'a1')
    await settled()
    assert.deepEqual(begun, [])
    shares.give('a', 11)
    await settled()
    assert.deepEqual(begun, ['a1'])
  })
})
