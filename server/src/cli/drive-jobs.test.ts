import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as later } from 'node:timers/promises'
import { driveJobs } from './drive-jobs.ts'

/** A worker that counts its turns, of which each lasts until it is let go on. */
function counting() {
  const worker = {
    turns: 0,
    atOnce: 0,
    stopped: 0,
    abandoned: false,
    goOn: (): void => {},
    onWork: (): void => {},
    turn: async (): Promise<void> => {
      worker.turns++
      worker.atOnce++
      await new Promise<void>((done) => (worker.goOn = done))
      worker.atOnce--
    },
    stop: async (): Promise<void> => void worker.stopped++,
    abandon: (): void => void (worker.abandoned = true),
  }
  return worker
}

test('driveJobs() gives a turn at once, one more for what came meanwhile, and never two together', async () => {
  const worker = counting()
  const driven = driveJobs(worker, 3_600_000)
  assert.equal(worker.turns, 1)
  worker.onWork()
  worker.onWork()
  assert.equal(worker.turns, 1)
  worker.goOn()
  await later()
  assert.deepEqual([worker.turns, worker.atOnce], [2, 1])
  worker.goOn()
  await later()
  assert.deepEqual([worker.turns, worker.atOnce], [2, 0])
  await driven.stop()
})

test('driveJobs() gives turns by itself, until it is stopped', async () => {
  const worker = counting()
  worker.turn = async () => void worker.turns++
  const driven = driveJobs(worker, 1)
  while (worker.turns < 3) await later()
  await driven.stop()
  const { turns } = worker
  worker.onWork()
  for (let n = 0; n < 20; n++) await later()
  assert.deepEqual([worker.turns, worker.stopped, worker.abandoned], [turns, 1, true])
})

test('driveJobs() abandons what does not come to an end in time', async () => {
  const worker = counting()
  worker.turn = async () => {}
  worker.stop = () => new Promise(() => {})
  await driveJobs(worker, 3_600_000, 1).stop()
  assert.equal(worker.abandoned, true)
})
