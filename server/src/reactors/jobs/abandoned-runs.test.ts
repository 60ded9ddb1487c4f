import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyOf, callbackStage, type CallbackStage } from '../../../test/kit/callback-stage.ts'
import type { JsonObject } from '../../base/json.ts'
import { JOBS_TAKEN } from '../../base/limits.ts'
import { abandonRuns } from './abandoned-runs.ts'

/** Acts as opening the store does: every claim is lost. */
async function reopen({ vault }: CallbackStage): Promise<void> {
  const { store, clock } = vault.world
  const all = { now: Number.MAX_SAFE_INTEGER, limit: 1000, without: [] }
  const jobs = await store.jobs.due(vault.tenantId, { stage: 'run', ...all })
  const changes = jobs.map((it) => {
    const job = { ...it, dueAt: clock.now(), revision: it.revision + 1 }
    return { kind: 'update', entity: 'job', row: job } as const
  })
  assert.equal(await store.commit(vault.tenantId, changes), null)
}

test('abandonRuns() has every waiting run reported as interrupted, and none run', async () => {
  const stage = await callbackStage()
  const ids = await Promise.all(Array.from({ length: 2 * JOBS_TAKEN + 1 }, () => stage.invoke()))
  await abandonRuns(stage.vault.world.store)
  await stage.work()
  assert.equal(stage.sent.length, 0)
  await reopen(stage)
  await stage.work()
  assert.deepEqual(stage.runner.ran, [])
  assert.equal(stage.sent.length, ids.length)
  for (const it of stage.sent) {
    assert.equal((bodyOf(it) as JsonObject)['code'], 'reactor_interrupted')
  }
})

test('abandonRuns() lets those run that may be run again', async () => {
  const stage = await callbackStage()
  await stage.invoke({ rerun_interrupted: true })
  await abandonRuns(stage.vault.world.store)
  await reopen(stage)
  await stage.work()
  assert.deepEqual([stage.runner.ran.length, stage.sent.length], [1, 1])
})

test('abandonRuns() leaves results that wait for their receiver as they are', async () => {
  const stage = await callbackStage()
  stage.receive(() => ({ fault: 'unreachable' }))
  await stage.invoke()
  await stage.work()
  stage.receive(() => ({ status: 200 }))
  await abandonRuns(stage.vault.world.store)
  await stage.pass(1)
  assert.deepEqual(stage.sent.map(bodyOf), [{ raw: { a: 1 } }, { raw: { a: 1 } }])
})
