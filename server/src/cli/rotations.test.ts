import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CountedRandom } from '../../test/kit/counted-random.ts'
import { stillWorld, thinKeyProvider } from '../../test/kit/still-world.ts'
import { setUp } from '../access/applications/set-up.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import { MemoryStore } from '../../test/kit/memory-store/memory-store.ts'
import { ROTATIONS_AT_ONCE } from '../base/limits.ts'
import { insert, token } from '../ports/store-kit.contract.ts'
import type { Change } from '../ports/change.ts'
import { withCommit } from '../ports/with-commit.ts'
import { Rotations } from './rotations.ts'

test('rotateAll() rotates for all it can, some at a time, and tells of each; then it rejects with the first that failed', async (t) => {
  const { rotations, store, tenantIds, runningCounts } = await tenantsOf(t, ROTATIONS_AT_ONCE + 3)
  // Sealed under a key that does not exist.
  await store.commit(tenantIds[1]!, [insert(token(1))])
  const done: string[] = []
  const rotated = rotations.rotateAll(
    tenantIds,
    () => {},
    (id) => done.push(id),
  )
  await assert.rejects(rotated, /something among the tokens does not open/)
  assert.deepEqual(done.toSorted(), tenantIds.filter((_, n) => n !== 1).toSorted())
  for (const [n, id] of tenantIds.entries()) {
    const keys = (await store.tenants.keys(id)).filter((it) => it.purpose === 'enc')
    assert.deepEqual(
      keys.map((it) => it.version),
      n === 1 ? [1, 2] : [2],
    )
  }
  assert.equal(Math.max(...runningCounts), ROTATIONS_AT_ONCE)
})

test('stop() keeps rotateAll() from beginning with those whose turn had not come', async (t) => {
  const { rotations, store, tenantIds } = await tenantsOf(t, ROTATIONS_AT_ONCE + 3)
  const rotated = rotations.rotateAll(
    tenantIds,
    () => {},
    () => {},
  )
  rotated.catch(() => {})
  await rotations.stop()
  await assert.rejects(rotated, /stopping|aborted/)
  for (const id of tenantIds.slice(ROTATIONS_AT_ONCE)) {
    assert.equal((await store.tenants.keys(id)).filter((it) => it.purpose === 'enc').length, 1)
  }
})

test('resume() goes on with what was begun, and with nothing else', async (t) => {
  const { rotations, store, tenantIds, maker } = await tenantsOf(t, 3)
  const key = await maker.next(tenantIds[2]!, 2, 0)
  await store.commit(tenantIds[2]!, [{ kind: 'insert', entity: 'tenant_key', row: key }])
  await rotations.resume()
  const versions = tenantIds.map(async (id) => {
    const keys = await store.tenants.keys(id)
    return keys.filter((it) => it.purpose === 'enc').map((it) => it.version)
  })
  assert.deepEqual(await Promise.all(versions), [[1], [1], [2]])
})

test('resumeInterrupted() continues what an outage ended, and repeats nothing that failed by itself', async (t) => {
  let answers = true
  const { rotations, store, tenantIds } = await tenantsOf(t, 2, (changes) => {
    if (!answers && changes[0]!.kind === 'retire-data-keys') throw new Error('no answer')
  })
  const [interrupted, damaged] = tenantIds as [string, string]
  // Sealed under a key that does not exist.
  await store.commit(damaged, [insert(token(1))])
  answers = false
  for (const id of tenantIds) await assert.rejects(rotations.rotate(id, () => {}))
  await rotations.resumeInterrupted()
  assert.deepEqual(await dataKeysOf(store, interrupted), [1, 2])
  answers = true
  const heard = t.mock.method(store.tenants, 'envelopes')
  await rotations.resumeInterrupted()
  assert.deepEqual(await dataKeysOf(store, interrupted), [2])
  assert.deepEqual(await dataKeysOf(store, damaged), [1, 2])
  assert.equal(heard.mock.calls.filter(({ arguments: [id] }) => id === damaged).length, 0)
  heard.mock.resetCalls()
  await rotations.resumeInterrupted()
  assert.equal(heard.mock.callCount(), 0)
})

test('resumeInterrupted() asks nothing of the store once the service is stopping', async (t) => {
  const { rotations, store, tenantIds } = await tenantsOf(t, 1, (changes) => {
    if (changes[0]!.kind === 'retire-data-keys') throw new Error('no answer')
  })
  await assert.rejects(rotations.rotate(tenantIds[0]!, () => {}))
  await rotations.stop()
  const asked = t.mock.method(store.tenants, 'keys')
  await rotations.resumeInterrupted()
  assert.equal(asked.mock.callCount(), 0)
})

async function dataKeysOf(store: MemoryStore, tenantId: string): Promise<number[]> {
  const keys = await store.tenants.keys(tenantId)
  return keys.filter((it) => it.purpose === 'enc').map((it) => it.version)
}

async function tenantsOf(
  t: { after: (fn: () => Promise<void>) => void },
  count: number,
  onCommit: (changes: readonly Change[]) => void = () => {},
) {
  const store = new MemoryStore()
  const provider = thinKeyProvider()
  const keyring = new LocalKeyring(provider, new CountedRandom(), (id) => store.tenants.keys(id))
  const faulty = withCommit(store, async (tenantId, changes) => {
    onCommit(changes)
    return await store.commit(tenantId, changes)
  })
  const world = { ...stillWorld(store), store: faulty, keyring }
  const tenantIds: string[] = []
  for (let n = 0; n < count; n++) {
    tenantIds.push((await setUp(world, provider, { name: `t${n}`, plan: 'standard' })).tenantId)
  }
  let [running, runningCounts] = [0, [0]]
  const maker = {
    rootKey: provider.id,
    rewrap: keyring.rewrap.bind(keyring),
    reread: keyring.reread.bind(keyring),
    next: async (...asked: Parameters<LocalKeyring['next']>) => {
      runningCounts.push(++running)
      // Enough turns for all others that may to get this far.
      for (let turn = 0; turn < 50; turn++)
        await new Promise((resolve) => void setImmediate(resolve))
      running -= 1
      return await keyring.next(...asked)
    },
  }
  const rotations = new Rotations(world, maker, 0)
  t.after(() => rotations.stop())
  return { rotations, store, tenantIds, runningCounts, maker }
}
