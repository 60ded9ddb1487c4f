/** What is sealed for later stays of use when the data key is replaced meanwhile. Decision 0037. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { JsonObject } from '../../src/base/json.ts'
import { rotateDataKey } from '../../src/keys/rotate-data-key.ts'
import { RunnerUnavailable } from '../../src/world/reactor-runner.ts'
import { bodyOf, callbackStage, headersOf, type CallbackStage } from '../kit/callback-stage.ts'
import { returned } from '../kit/still-runner.ts'
import { STILL_NOW } from '../kit/still-world.ts'

/** Replaces the data key, and destroys the one before at once. */
async function rotate({ vault: { world, tenantId, keyMaker } }: CallbackStage): Promise<void> {
  const means = { maker: keyMaker, pause: async () => {}, tell: () => {}, retirementMs: 0 }
  await rotateDataKey(world, tenantId, means)
  const keys = await world.store.tenants.keys(tenantId)
  assert.equal(keys.filter((it) => it.purpose === 'enc').length, 1)
}

async function secretOf({ manage }: CallbackStage): Promise<string> {
  const reply = await manage('GET', '/callbacks/secret')
  assert.equal(reply.status, 200, reply.text)
  return (reply.json()['secrets'] as { secret: string }[])[0]!.secret
}

async function begin({ vault, id, key }: CallbackStage): Promise<string> {
  const body = { args: { a: 2 } }
  const reply = await vault.call('POST', `/reactors/${id}/react-async`, { key, body })
  assert.equal(reply.status, 202, reply.text)
  return `/reactors/${id}/results/${reply.json()['asyncReactorRequestId'] as string}`
}

async function fetched({ vault, key }: CallbackStage, path: string): Promise<JsonObject> {
  const reply = await vault.call('GET', path, { key })
  assert.equal(reply.status, 200, reply.text)
  return reply.json()
}

test('a rotation leaves waiting jobs, results and the secret of callbacks readable', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: STILL_NOW })
  const stage = await callbackStage({ oneServer: 'a data key is replaced' })
  const { invoke, work, sent } = stage
  const [secret, kept] = [await secretOf(stage), await begin(stage)]
  await work()
  await invoke()
  await rotate(stage)
  assert.equal(await secretOf(stage), secret)
  assert.deepEqual(await fetched(stage, kept), { raw: { a: 2 } })
  await work()
  assert.deepEqual(sent.map(bodyOf), [{ raw: { a: 1 } }])
  const body = new Webhook(secret).verify(sent[0]!.body.toString(), headersOf(sent[0]!))
  assert.deepEqual(body, { raw: { a: 1 } })
})

test('a rotation from beginning to end while code runs leaves its result readable', async () => {
  const stage: CallbackStage = await callbackStage({
    oneServer: 'a data key is replaced',
    behave: async ({ args }) => {
      await rotate(stage)
      return returned({ raw: args })
    },
  })
  const kept = await begin(stage)
  await stage.work()
  assert.deepEqual(await fetched(stage, kept), { raw: { a: 2 } })
})

test('a rotation while a run finds no room leaves the job to be run later', async () => {
  let full = true
  const stage: CallbackStage = await callbackStage({
    oneServer: 'a data key is replaced',
    behave: async ({ args }) => {
      if (!full) return returned({ raw: args })
      await rotate(stage)
      throw new RunnerUnavailable('full')
    },
  })
  const kept = await begin(stage)
  await stage.work()
  full = false
  await stage.pass(1)
  assert.deepEqual(await fetched(stage, kept), { raw: { a: 2 } })
})

test('a rotation while a receiver is asked leaves the callback to be sent again, and to be given up', async () => {
  let asked = async (): Promise<void> => {}
  const stage = await callbackStage({
    oneServer: 'a data key is replaced',
    change: (world) => {
      const vet: typeof world.egress.vet = async (...about) => {
        await asked()
        return await world.egress.vet(...about)
      }
      return { ...world, egress: { ...world.egress, vet } }
    },
  })
  const { invoke, work, pass, sent, receive, dead } = stage
  await invoke()
  asked = () => rotate(stage)
  receive(() => ({ status: 500 }))
  await work()
  receive(() => ({ status: 410 }))
  await pass(1)
  assert.deepEqual(sent.map(bodyOf), [{ raw: { a: 1 } }, { raw: { a: 1 } }])
  assert.deepEqual(
    (await dead()).map((it) => it['id']),
    [headersOf(sent[0]!)['webhook-id']],
  )
})
