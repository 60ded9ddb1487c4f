import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sweeper } from './sweeper.ts'
import { setUp } from '../access/applications/set-up.ts'
import { TENANT_CLEARING_MS } from '../base/limits.ts'
import { stillWorld, thinKeyProvider } from '../../test/kit/still-world.ts'

test('it sweeps at once until nothing is left, then again, with the time of the clock', async (t) => {
  const { world, swept, calls } = sweeping((n) => n % 3 !== 2)
  const sweeper = new Sweeper(world, 1)
  await calls(3)
  world.clock.pass(1000)
  await calls(6)
  await sweeper.stop()
  const at = [swept[0]!, swept[5]!]
  assert.equal(at[1]! - at[0]!, 1000)
  const before = swept.length
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const another = new Sweeper(world, 1)
  await calls(before + 3)
  await another.stop()
  const after = swept.length
  t.mock.timers.tick(1_000)
  await turn()
  assert.equal(swept.length, after)
})

test('after an error it goes on, and the error is logged', async () => {
  const { world, calls } = sweeping((n) => {
    if (n === 0) throw new Error('the disk is full')
    return false
  })
  const sweeper = new Sweeper(world, 1)
  await calls(3)
  await sweeper.stop()
  assert.deepEqual(
    world.logged.map((it) => (it as unknown[])[0]),
    ['sweep_failed'],
  )
})

test('stop() waits for what is under way, and nothing more is begun', async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const { world, swept } = sweeping(() => promise)
  const sweeper = new Sweeper(world, 1)
  const state = { stopped: false }
  const stopping = sweeper.stop().then(() => (state.stopped = true))
  for (let n = 0; n < 10; n++) await turn()
  assert.equal(state.stopped, false)
  resolve(true)
  await stopping
  assert.equal(swept.length, 1)
})

test('what a tenant left behind that was deleted meanwhile is removed at the next turn', async () => {
  const world = stillWorld()
  const made = { name: 'a', plan: 'enterprise' } as const
  const { tenantId } = await setUp(world, thinKeyProvider(), made)
  const sweeper = new Sweeper(world, 1)
  await world.store.commit(tenantId, [{ kind: 'delete-tenant', at: world.clock.now() }])
  const until = async (done: () => Promise<boolean>): Promise<void> => {
    while (!(await done())) await turn()
  }
  await until(async () => (await world.store.auditLog.state(tenantId)) === null)
  assert.equal((await world.store.tenants.deleted()).length, 1)
  world.clock.pass(TENANT_CLEARING_MS + 1)
  await until(async () => (await world.store.tenants.deleted()).length === 0)
  await sweeper.stop()
  assert.deepEqual(world.logged, [])
})

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

/** A world whose store answers the `n`th sweep with `answer(n)`. */
function sweeping(answer: (n: number) => boolean | Promise<boolean>) {
  const still = stillWorld()
  const swept: number[] = []
  const waiting = new Map<number, () => void>()
  const store = {
    ...still.store,
    sweep: async (now: number) => {
      const n = swept.push(now) - 1
      waiting.get(n + 1)?.()
      return await answer(n)
    },
  }
  return {
    world: { ...still, store },
    swept,
    /** Resolves once the store has been called `count` times. */
    calls: async (count: number) => {
      if (swept.length >= count) return
      await new Promise<void>((resolve) => void waiting.set(count, resolve))
    },
  }
}
