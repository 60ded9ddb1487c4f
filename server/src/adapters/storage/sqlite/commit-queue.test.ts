import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { range } from '../../../ports/store-kit.contract.ts'
import { TENANT, freshFolder, insertNumbered, openStore } from '../../../../test/kit/sqlite-kit.ts'

test('all commits that arrive during one flush share the next', async (t) => {
  const [flushes, released] = [join(freshFolder(t), 'flushes'), join(freshFolder(t), 'released')]
  // The first flush lasts until the test ends it.
  const module = `
    import { appendFileSync, existsSync } from 'node:fs'
    const cell = new Int32Array(new SharedArrayBuffer(4))
    export default (point) => {
      if (point !== 'committing') return
      appendFileSync(${JSON.stringify(flushes)}, '.')
      while (!existsSync(${JSON.stringify(released)})) Atomics.wait(cell, 0, 0, 1)
    }`
  const probe = new URL(`data:text/javascript,${encodeURIComponent(module)}`)
  const store = await openStore(t, { folder: freshFolder(t), probe })
  const commit = (n: number) => store.commit(TENANT, [insertNumbered(n, n + 1)])
  const first = commit(0)
  while (!existsSync(flushes)) await nextTurn()
  const others = Promise.all(range(1, 300).map(commit))
  writeFileSync(released, '')
  assert.deepEqual([await first, ...(await others)], Array(300).fill(null))
  assert.equal(readFileSync(flushes, 'utf8'), '..')
})

test('a commit waits for others only if many were just acknowledged, and no longer than 1 ms', async (t) => {
  const store = await openStore(t, { folder: freshFolder(t) })
  const delays: (() => void)[] = []
  let holds = false
  const real = setTimeout
  t.mock.method(globalThis, 'setTimeout', (...[work, ms]: Parameters<typeof setTimeout>) => {
    if (ms !== 1) return real(work, ms)
    delays.push(work)
    return real(holds ? () => {} : work, ms)
  })
  const commit = (n: number) => store.commit(TENANT, [insertNumbered(n, n + 1)])
  for (const n of range(0, 3)) await commit(n)
  await Promise.all(range(3, 18).map(commit))
  await commit(18)
  assert.equal(delays.length, 0)
  holds = true
  await Promise.all(range(19, 40).map(commit))
  let made = false
  const late = commit(40).then(() => (made = true))
  while (delays.length === 0) await nextTurn()
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  assert.equal(store.activity.waiting(), 1)
  assert.equal(made, false)
  delays[0]!()
  await late
})
