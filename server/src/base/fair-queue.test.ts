import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FairQueue } from './fair-queue.ts'

describe('FairQueue', () => {
  test('lets one work at a time, owners one after the other, each in its own order', async () => {
    const queue = new FairQueue()
    const done: string[] = []
    let running = 0
    const work = (owner: string, name: string) =>
      queue.run(owner, async () => {
        running += 1
        await Promise.resolve()
        assert.equal(running, 1)
        done.push(name)
        running -= 1
        return name
      })
    const names = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']
    assert.deepEqual(await Promise.all(names.map((it) => work(it[0]!, it))), names)
    assert.deepEqual(done, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  test('rejects as the work does, and goes on with the next', async () => {
    const queue = new FairQueue()
    const failed = queue.run('a', () => Promise.reject(new Error('No')))
    const thrown = queue.run('a', () => {
      throw new Error('At once')
    })
    const fine = queue.run('b', async () => 'fine')
    await assert.rejects(failed, /No/)
    await assert.rejects(thrown, /At once/)
    assert.equal(await fine, 'fine')
    assert.equal(await queue.run('a', async () => 'again'), 'again')
  })
})
