import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as later } from 'node:timers/promises'
import { driveJobs } from './drive-jobs.ts'

/** A worker that counts its polls, each of which lasts until it is released. */
function counting() {
  const worker = {
    polls: 0,
    activePolls: 0,
    stopped: 0,
    abandoned: false,
    goOn: (): void => {},
    onWork: (): void => {},
    poll: async (): Promise<void> => {
      worker.polls++
      worker.activePolls++
      await new Promise<void>((done) => (worker.goOn = done))
      worker.activePolls--
    },
    stop: async (): Promise<void> => void worker.stopped++,
    abandon: (): void => void (worker.abandoned = true),
  }
  return worker
}

test('driveJobs() polls at once, one more for what came meanwhile, and never two together', async () => {
  const worker = counting()
  const driven = driveJobs(worker, 3_600_000)
  assert.equal(worker.polls, 1)
  worker.onWork()
  worker.onWork()
  assert.equal(worker.polls, 1)
  worker.goOn()
  await later()
  assert.deepEqual([worker.polls, worker.activePolls], [2, 1])
  worker.goOn()
  await later()
  assert.deepEqual([worker.polls, worker.activePolls], [2, 0])
  await driven.stop()
})

test('driveJobs() polls by itself, until it is stopped', async () => {
  const worker = counting()
  worker.poll = async () => void worker.polls++
  const driven = driveJobs(worker, 1)
  while (worker.polls < 3) await later()
  await driven.stop()
  const { polls } = worker
  worker.onWork()
  for (let n = 0; n < 20; n++) await later()
  assert.deepEqual([worker.polls, worker.stopped, worker.abandoned], [polls, 1, true])
})

test('driveJobs() abandons what does not come to an end in time', async () => {
  const worker = counting()
  worker.poll = async () => {}
  worker.stop = () => new Promise(() => {})
  await driveJobs(worker, 3_600_000, 1).stop()
  assert.equal(worker.abandoned, true)
})
