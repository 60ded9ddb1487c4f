import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JOB_SIZES_MS } from '../../base/limits.ts'
import type { World } from '../../ports/world.ts'
import { JobStorage } from './job-storage.ts'

const TENANT = 'tenant-a'

test('a measurement that takes longer than it is good for is used once, and not repeated for ever', async () => {
  const { storage, measured } = stage({ bytes: 0, tookMs: JOB_SIZES_MS + 1 })
  await storage.requireRoom(TENANT)
  assert.equal(await storage.hasRoomForResult(TENANT), true)
  assert.equal(measured(), 2)
})

test('so is one that found no room', async () => {
  const { storage, measured } = stage({ bytes: 1_001, tookMs: JOB_SIZES_MS + 1 })
  await assert.rejects(storage.requireRoom(TENANT), { code: 'job_storage_full' })
  assert.equal(await storage.hasRoomForResult(TENANT), false)
  assert.equal(measured(), 2)
})

/** Storage of 1,000 bytes in which results have `bytes`. Measuring too often fails. */
function stage({ bytes, tookMs }: { readonly bytes: number; readonly tookMs: number }) {
  let [now, measured] = [0, 0]
  const sizes = async () => {
    if (++measured > 10) throw new Error('Measured again and again')
    now += tookMs
    return { waiting: { count: 0, bytes: 0 }, finished: { count: 0, bytes } }
  }
  const world = { clock: { elapsed: () => now }, store: { jobs: { sizes } } }
  const storage = new JobStorage(world as unknown as Pick<World, 'clock' | 'store'>, 1_000)
  return { storage, measured: () => measured }
}
