/** A tenant that has asynchronous invocations leave behind as much as they can. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  JOB_RESULT_MS,
  JOB_RUNS_OF_ONE_AT_ONCE,
  JOB_SIZES_MS,
  JOB_WAIT_MS_MAX,
  MiB,
} from '../../src/base/limits.ts'
import { callbackStage, RECEIVER, type CallbackStage } from '../kit/callback-stage.ts'
import type { ReactorStageOptions } from '../kit/reactor-stage.ts'
import { returned } from '../kit/still-runner.ts'
import type { Reply } from '../kit/still-vault.ts'

const LIMIT = MiB
const RESULT = 'x'.repeat(LIMIT / 16)

const STORES: Record<string, ReactorStageOptions> = {
  'one server on SQLite': { store: 'sqlite', oneServer: 'there are several already' },
  'two servers on PostgreSQL': { servers: 2 },
}

function stageOn(options: ReactorStageOptions): Promise<CallbackStage> {
  return callbackStage({
    jobStorageBytesMax: LIMIT,
    behave: () => returned({ raw: RESULT }),
    ...options,
  })
}

async function begin({ vault, id, key }: CallbackStage, args: string): Promise<Reply> {
  return await vault.call('POST', `/reactors/${id}/react-async`, { key, body: { args } })
}

/** Invokes until it is refused; returns the ids of what was accepted. */
async function fill(stage: CallbackStage, args: string, most: number): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < most) {
    const reply = await begin(stage, args)
    if (reply.status !== 202) {
      assert.deepEqual([reply.status, reply.json()['code']], [429, 'job_storage_full'], reply.text)
      assert.ok(Number(reply.headers['retry-after']) > 0)
      break
    }
    ids.push(reply.json()['asyncReactorRequestId'] as string)
  }
  return ids
}

async function storedBytes({ vault }: CallbackStage): Promise<number> {
  const { waiting, finished } = await vault.world.store.jobs.sizes(vault.tenantId)
  return waiting.bytes + finished.bytes
}

async function resultOf({ vault, id, key }: CallbackStage, requestId: string): Promise<Reply> {
  return await vault.call('GET', `/reactors/${id}/results/${requestId}`, { key })
}

for (const [name, options] of Object.entries(STORES)) {
  describe(`on ${name}`, () => {
    test('results stay within the limit; what was accepted runs, waits, or ends with an error, and none is lost', async (t) => {
      const stage = await stageOn(options)
      t.after(() => stage.vault.close())
      const { clock } = stage.vault.world
      const ids = await fill(stage, '', 100)
      assert.equal(ids.length, 100, 'what waits has hardly any size')
      await stage.work()
      // Each server may have runs in progress when the limit is reached.
      const runs = stage.vault.servers.apps.length * JOB_RUNS_OF_ONE_AT_ONCE
      const bytes = await storedBytes(stage)
      assert.ok(bytes >= LIMIT, String(bytes))
      assert.ok(bytes < LIMIT + (runs + 1) * 1.1 * RESULT.length, String(bytes))
      const ran = stage.runner.ran.length
      assert.ok(ran < ids.length)
      assert.deepEqual(await fill(stage, '', 1), [])

      clock.pass(JOB_WAIT_MS_MAX + JOB_SIZES_MS)
      await stage.work()
      assert.equal(stage.runner.ran.length, ran, 'nothing runs that there is no room for')
      const replies = await Promise.all(ids.map((it) => resultOf(stage, it)))
      const results = replies.filter((it) => it.status === 200)
      const errors = replies.filter((it) => it.status === 429)
      assert.deepEqual([results.length, errors.length], [ran, ids.length - ran])
      for (const it of errors) assert.equal(it.json()['code'], 'job_storage_full')

      clock.pass(JOB_RESULT_MS)
      await stage.work()
      assert.ok((await storedBytes(stage)) < LIMIT / 10)
      clock.pass(JOB_SIZES_MS)
      assert.equal((await fill(stage, '', 5)).length, 5)
      await stage.work()
      assert.equal(stage.runner.ran.length, ran + 5)
    })

    test('arguments that wait stay within the limit, and running them makes room', async (t) => {
      const stage = await stageOn({ ...options, behave: () => returned({ raw: null }) })
      t.after(() => stage.vault.close())
      const sent = await Promise.all(Array.from({ length: 40 }, () => begin(stage, RESULT)))
      const accepted = sent.filter((it) => it.status === 202)
      // Each server sees what the other accepts only when it measures again.
      const servers = stage.vault.servers.apps.length
      assert.ok(accepted.length >= 10 && accepted.length < 16 * servers, String(accepted.length))
      assert.ok((await storedBytes(stage)) <= servers * LIMIT)
      stage.vault.world.clock.elapse(JOB_SIZES_MS)
      assert.equal((await begin(stage, RESULT)).status, 429)
      await stage.work()
      assert.ok((await storedBytes(stage)) < LIMIT / 10)
      stage.vault.world.clock.elapse(JOB_SIZES_MS)
      assert.equal((await begin(stage, RESULT)).status, 202)
    })

    test('results that are delivered free their space', async (t) => {
      const stage = await stageOn(options)
      t.after(() => stage.vault.close())
      for (let n = 0; n < 40; n++) {
        await stage.invoke()
        await stage.work()
      }
      assert.equal(stage.sent.length, 40)
      assert.equal(stage.sent[0]!.url, RECEIVER)
      assert.equal(await storedBytes(stage), 0)
    })
  })
}
