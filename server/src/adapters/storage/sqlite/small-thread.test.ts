import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { startSmallThread } from './small-thread.ts'

/** Reports that it has started and, after some 100 MB of garbage, the size of its young generation in MiB. */
const WASTEFUL = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads'
    import { getHeapSpaceStatistics } from 'node:v8'
    parentPort.postMessage('ready')
    const recent = []
    for (let n = 0; n < 1_000_000; n++) recent[n % 5000] = { n, text: 'a' + n }
    const young = getHeapSpaceStatistics().find((it) => it.space_name === 'new_space')
    parentPort.postMessage(young.physical_space_size / 2 ** 20)
  `)}`,
)

test('the young generation of a small thread stays small, and that of the next is as ever', async () => {
  const small = await startSmallThread(WASTEFUL, {})
  const young = await grownTo(small)
  const usual = new Worker(WASTEFUL)
  await once(usual, 'message')
  const usually = await grownTo(usual)
  assert.ok(young < usually / 2, `${young} MiB of ${usually}`)
})

async function grownTo(worker: Worker): Promise<number> {
  const [mib] = (await once(worker, 'message')) as [number]
  await worker.terminate()
  return mib
}
