import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CVC_LIFETIME_MS, JOB_RESULT_MS } from '../../src/base/limits.ts'
import { isUuid } from '../../src/base/id.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { openJobState, openResult, sealJobState } from '../../src/reactors/jobs/job-state.ts'
import { callbackStage, RECEIVER, type CallbackStage } from '../kit/callback-stage.ts'
import { threw } from '../kit/still-runner.ts'

async function begin({ vault, id, key }: CallbackStage, body: JsonObject = { args: { a: 1 } }) {
  const reply = await vault.call('POST', `/reactors/${id}/react-async`, { key, body })
  assert.equal(reply.status, 202, reply.text)
  const { asyncReactorRequestId: requestId, ...rest } = reply.json()
  assert.deepEqual(rest, {})
  assert.ok(isUuid(requestId as string))
  return `/reactors/${id}/results/${requestId as string}`
}

describe('POST /reactors/{id}/react-async', () => {
  test('names a result, which is 404 until it is there, and then what a caller who waits would get', async () => {
    const stage = await callbackStage()
    const { vault, key, work, sent } = stage
    const path = await begin(stage)
    const early = await vault.call('GET', path, { key })
    assert.deepEqual([early.status, early.json()['code']], [404, 'reactor_result_not_found'])
    await work()
    for (let n = 0; n < 2; n++) {
      const reply = await vault.call('GET', path, { key })
      assert.deepEqual([reply.status, reply.json()], [200, { raw: { a: 1 } }])
      assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8')
    }
    assert.equal(sent.length, 0)
  })

  test('keeps what the code throws, status and all', async () => {
    const stage = await callbackStage({
      behave: () => threw({ name: 'InvalidPaymentMethodError', errors: 'no' }),
    })
    const path = await begin(stage)
    await stage.work()
    const reply = await stage.vault.call('GET', path, { key: stage.key })
    assert.deepEqual([reply.status, reply.json()['detail']], [402, 'Invalid Payment Method'])
  })

  test('keeps bytes that the code throws as a response', async () => {
    const stage = await callbackStage({
      behave: () => threw({ name: 'CustomHttpResponseError', status: 200, bytes: 'AP+A' }),
    })
    const path = await begin(stage)
    await stage.work()
    const reply = await stage.vault.call('GET', path, { key: stage.key })
    assert.deepEqual([reply.status, reply.bytes], [200, Buffer.from([0, 255, 128])])
  })

  test('keeps a result for a day, or as long as the security code behind it', async () => {
    const stage = await callbackStage()
    const { vault, key, work, token } = stage
    const data = { number: '4242424242424242', expiration_month: 1, expiration_year: 2030 }
    const card = await token({ ...data, cvc: '123' }, { type: 'card' })
    const [path, ofCard] = [await begin(stage), await begin(stage, { args: `{{ ${card} }}` })]
    await work()
    const there = async () => [
      (await vault.call('GET', path, { key })).status,
      (await vault.call('GET', ofCard, { key })).status,
    ]
    assert.deepEqual(await there(), [200, 200])
    vault.world.clock.pass(CVC_LIFETIME_MS)
    assert.deepEqual(await there(), [200, 404])
    vault.world.clock.pass(JOB_RESULT_MS - CVC_LIFETIME_MS - 1)
    assert.deepEqual(await there(), [200, 404])
    vault.world.clock.pass(1)
    assert.deepEqual(await there(), [404, 404])
    await work()
    const id = path.split('/').at(-1)!
    assert.equal(await vault.world.store.jobs.find(vault.tenantId, id), null)
  })

  test('shows a result only to the application that asked for it', async () => {
    const stage = await callbackStage()
    const path = await begin(stage)
    await stage.work()
    const another = await stage.vault.keyFor({ permissions: ['token:use'] })
    const reply = await stage.vault.call('GET', path, { key: another })
    assert.deepEqual([reply.status, reply.json()['code']], [404, 'reactor_result_not_found'])
    const without = await stage.vault.keyFor({ permissions: ['token:read'] })
    assert.equal((await stage.vault.call('GET', path, { key: without })).status, 403)
    const elsewhere = path.replace(stage.id, '01945d00-0000-4000-8000-0000000000ff')
    for (const it of [elsewhere, path.replace(/[^/]+$/, 'x')]) {
      assert.equal((await stage.vault.call('GET', it, { key: stage.key })).status, 404)
    }
    assert.equal((await stage.vault.call('GET', path, { key: stage.key })).status, 200)
  })

  test('is invoked once in the audit log: fetching its result is a read of the result', async () => {
    const stage = await callbackStage()
    const { vault, key, work, logs } = stage
    const path = await begin(stage)
    const id = path.split('/').at(-1)!
    const messages = async (): Promise<unknown[]> => {
      const { data } = await logs('?size=100')
      const about = data.filter((it) => (it['entity_type'] as string).startsWith('reactor'))
      return about.map((it) => [it['message'], it['entity_id'] ?? null])
    }
    const before = await messages()
    const absent = [path, path.replace(/[^/]+$/, 'x'), path.replace(stage.id, id)]
    for (const it of absent) assert.equal((await vault.call('GET', it, { key })).status, 404)
    const another = await vault.keyFor({ permissions: ['token:use'] })
    assert.deepEqual(await messages(), before)

    await work()
    const ran = await messages()
    assert.equal((await vault.call('GET', path, { key: another })).status, 404)
    assert.deepEqual(await messages(), ran)
    assert.equal((await vault.call('GET', path, { key })).status, 200)
    const read = ['Reactor result read', id]
    assert.deepEqual(await messages(), [read, ...ran])

    const without = await vault.keyFor({ permissions: ['token:read'] })
    assert.equal((await vault.call('GET', path, { key: without })).status, 403)
    const refused = ['Refused: read reactor_result, without reactor:invoke', null]
    assert.deepEqual(await messages(), [refused, read, ...ran])
  })

  test('is run for a session as far as its grantor has the rights still', async () => {
    const stage = await callbackStage()
    const { vault, id, work } = stage
    const browser = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
    const permissions = ['reactor:invoke']
    const changes: [change: JsonObject | null, status: number][] = [
      [{ permissions }, 200],
      [{ permissions: ['token:read'] }, 403],
      [null, 401],
    ]
    for (const [change, status] of changes) {
      const grantor = (
        await vault.call('POST', '/applications', {
          key: vault.managementKey,
          body: { name: 'grantor', type: 'private', permissions },
        })
      ).json()
      const opened = (await vault.call('POST', '/sessions', { key: browser })).json()
      const body = { nonce: opened['nonce']!, permissions }
      const given = { key: grantor['key'] as string, body }
      assert.equal((await vault.call('POST', '/sessions/authorize', given)).status, 200)
      const path = await begin({ ...stage, key: opened['session_key'] as string })
      const at = `/applications/${grantor['id'] as string}`
      const by = { key: vault.managementKey }
      const changed =
        change === null
          ? await vault.call('DELETE', at, by)
          : await vault.call('PUT', at, { ...by, body: { name: 'grantor', ...change } })
      assert.ok(changed.status < 300, changed.text)
      await work()
      const jobId = path.split('/').at(-1)!
      const job = await vault.world.store.jobs.find(vault.tenantId, jobId)
      const keys = await vault.world.keyring.open(vault.tenantId)
      assert.equal(openResult(keys, job!).status, status)
      assert.equal(job!.reactorId, id)
    }
  })

  test('is run for a session whose keys were not stored, by an earlier version, as it would have been', async () => {
    for (const earlier of [true, false]) {
      const stage = await callbackStage()
      const { vault, work } = stage
      const permissions = ['reactor:invoke']
      const by = { key: vault.managementKey }
      const body = { name: 'browser', type: 'public', permissions: ['token:create'] }
      const browser = (await vault.call('POST', '/applications', { ...by, body })).json()
      const opened = (
        await vault.call('POST', '/sessions', { key: browser['key'] as string })
      ).json()
      const grantor = await vault.keyFor({ permissions })
      const given = { key: grantor, body: { nonce: opened['nonce']!, permissions } }
      assert.equal((await vault.call('POST', '/sessions/authorize', given)).status, 200)
      const path = await begin({ ...stage, key: opened['session_key'] as string })
      const { jobs } = vault.world.store
      const find = async () => (await jobs.find(vault.tenantId, path.split('/').at(-1)!))!
      const keys = await vault.world.keyring.open(vault.tenantId)
      if (earlier) {
        const job = await find()
        const { initiator, ...state } = openJobState(keys, job)
        const { keys: _, ...session } = initiator.session!
        const before = { ...state, initiator: { ...initiator, session } }
        const terms = sealJobState(keys, job.id, before)
        const stored = { ...job, terms, revision: job.revision + 1 }
        const change = { kind: 'update', entity: 'job', row: stored } as const
        assert.equal(await vault.world.store.commit(vault.tenantId, [change]), null)
      }
      const at = `/applications/${browser['id'] as string}/regenerate`
      assert.equal((await vault.call('POST', at, by)).status, 200)
      await work()
      assert.equal(openResult(keys, await find()).status, earlier ? 200 : 401)
    }
  })

  test('takes no callback, and is for the enterprise plan', async () => {
    const { vault, id, key } = await callbackStage()
    const body = { callback_url: RECEIVER }
    const reply = await vault.call('POST', `/reactors/${id}/react-async`, { key, body })
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'body_invalid'])
  })

  test('leaves the result of a callback to the callback', async () => {
    const { vault, id, key, invoke, work } = await callbackStage()
    const requestId = await invoke()
    await work()
    const reply = await vault.call('GET', `/reactors/${id}/results/${requestId}`, { key })
    assert.equal(reply.status, 404)
  })
})
