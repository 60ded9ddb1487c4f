/**
 * A stolen key, and all that its thief started with it before the owner revoked it: nothing of that takes effect afterwards,
 * whether the key was the thief's own way in, opened a session, or authorized one.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { openResult } from '../../../src/reactors/jobs/job-state.ts'
import { callbackStage, type CallbackStage } from '../../kit/callback-stage.ts'
import type { Method, Reply, StillVault } from '../../kit/still-vault.ts'
import { returned } from '../../kit/still-runner.ts'
import { STILL_NOW } from '../../kit/still-world.ts'
import { transactionStage } from '../../kit/transaction-stage.ts'

const WRITING = ['token:create', 'token:update', 'token:delete']
const LIFETIME_MS = 60_000
const EXPIRING = { expires_at: new Date(STILL_NOW + LIFETIME_MS).toISOString() }

interface Keyholder {
  readonly id: string
  readonly key: string
}

/** How the key of an application comes to work no more. The application expires after LIFETIME_MS. */
const REVOCATIONS: Readonly<
  Record<string, (vault: StillVault, holder: Keyholder) => Promise<unknown>>
> = {
  'is deleted': async (vault, { id }) => {
    const keys = JSON.parse((await manage(vault, 'GET', `/applications/${id}/keys`)).text) as [
      { id: string },
    ]
    await manage(vault, 'DELETE', `/applications/${id}/keys/${keys[0].id}`)
  },
  'is regenerated': (vault, { id }) => manage(vault, 'POST', `/applications/${id}/regenerate`),
  'is deleted with its application': (vault, { id }) =>
    manage(vault, 'DELETE', `/applications/${id}`),
  'belongs to an application that has expired': async (vault) =>
    vault.world.clock.pass(LIFETIME_MS),
}

for (const [what, revoke] of Object.entries(REVOCATIONS)) {
  describe(`once a key ${what}`, () => {
    for (const type of ['public', 'private'] as const) {
      test(`what a ${type} key wrote in a transaction is not committed by any other key`, async () => {
        const { vault, begin, commit, rollback, seen } = await transactionStage()
        const thief = await holder(vault, { type, permissions: ['token:create'], ...EXPIRING })
        const transaction = await begin(thief.key)
        const id = await write(vault, thief.key, transaction)
        await revoke(vault, thief)
        assertRevoked(await commit(transaction))
        assert.equal(await seen(id), 404)
        assert.equal((await rollback(transaction)).status, 200)
        assert.equal(await seen(id), 404)
      })
    }

    for (const whose of ['opened', 'authorized'] as const) {
      test(`what a session that it ${whose} wrote in a transaction is not committed`, async () => {
        const { vault, begin, commit, rollback, seen } = await transactionStage()
        const { session, opener, grantor } = await sessionOf(vault, WRITING, EXPIRING)
        const transaction = await begin()
        const id = await write(vault, session, transaction)
        await revoke(vault, whose === 'opened' ? opener : grantor)
        assertRevoked(await commit(transaction))
        assert.equal((await rollback(transaction)).status, 200)
        assert.equal(await seen(id), 404)
      })

      test(`a job that a session it ${whose} began is not run`, async () => {
        const stage = await callbackStage()
        const { session, opener, grantor } = await sessionOf(
          stage.vault,
          ['reactor:invoke'],
          EXPIRING,
        )
        const job = await beginJob(stage, session)
        await revoke(stage.vault, whose === 'opened' ? opener : grantor)
        await stage.work()
        assert.equal(stage.runner.ran.length, 0)
        assert.equal((await resultOf(stage, job)).status, 401)
      })
    }

    test('a job that it began is not run', async () => {
      const stage = await callbackStage()
      const thief = await holder(stage.vault, { permissions: ['reactor:invoke'], ...EXPIRING })
      const job = await beginJob(stage, thief.key)
      await revoke(stage.vault, thief)
      await stage.work()
      assert.equal(stage.runner.ran.length, 0)
      assert.equal((await resultOf(stage, job)).status, 401)
    })
  })
}

test('a session that ended by itself revokes nothing: what it wrote is committed, and its job runs', async () => {
  const stage = await callbackStage()
  const { vault } = stage
  const { session } = await sessionOf(vault, ['reactor:invoke', 'token:create'])
  const opened = await vault.call('POST', '/transactions', { key: session })
  const transaction = opened.json()['id'] as string
  await write(vault, session, transaction)
  const job = await beginJob(stage, session)
  vault.world.clock.pass(10 * 60 * 1000)
  const ended = await vault.call('POST', '/transactions', { key: session })
  assert.equal(ended.status, 401)
  await stage.work()
  assert.equal((await resultOf(stage, job)).status, 200)
  const path = `/transactions/${transaction}/commit`
  assert.equal((await vault.call('POST', path, { key: stage.key })).status, 200)
})

test('what code wrote with an ephemeral key hangs on its application, not on the application’s keys', async () => {
  for (const [end, status] of [
    ['is regenerated', 200],
    ['is deleted with its application', 409],
  ] as const) {
    let transaction = ''
    const stage = await callbackStage({
      application: { permissions: ['token:create'] },
      behave: async ({ apiKey }) => {
        const headers = { 'bt-transaction-id': transaction }
        const inProcess = stage.vault.tenantId
        const call = { key: apiKey!, headers, inProcess, body: { data: 'x' } }
        const made = await stage.vault.call('POST', '/tokens', call)
        assert.equal(made.status, 201, made.text)
        return returned({ raw: 1 })
      },
    })
    const { vault, key, react } = stage
    transaction = (await vault.call('POST', '/transactions', { key })).json()['id'] as string
    assert.equal((await react({ args: {} })).status, 200)
    await REVOCATIONS[end]!(vault, { id: stage.applicationId!, key: '' })
    const path = `/transactions/${transaction}/commit`
    assert.equal((await vault.call('POST', path, { key })).status, status)
  }
})

test('a revoked key leaves no audit event of changes that were not made', async () => {
  const { vault, begin, commit, rollback } = await transactionStage()
  const thief = await holder(vault, { type: 'public', permissions: ['token:create'] })
  const transaction = await begin(thief.key)
  await write(vault, thief.key, transaction)
  await REVOCATIONS['is deleted']!(vault, thief)
  const before = await events(vault)
  assertRevoked(await commit(transaction))
  assert.deepEqual(await events(vault), before)
  await rollback(transaction)
  const after = await events(vault)
  assert.deepEqual(
    after.slice(0, after.length - before.length).map((it) => [it['entity_type'], it['operation']]),
    [['transaction', 'rollback']],
  )
})

async function manage(
  vault: StillVault,
  method: Method,
  path: string,
  body?: Json,
): Promise<Reply> {
  const reply = await vault.call(method, path, {
    key: vault.managementKey,
    ...(body !== undefined && { body }),
  })
  assert.ok(reply.status < 300, reply.text)
  return reply
}

/** Creates an application. */
async function holder(vault: StillVault, own: JsonObject): Promise<Keyholder> {
  const body = { name: 'theirs', type: 'private', ...own }
  const { id, key } = (await manage(vault, 'POST', '/applications', body)).json()
  return { id: id as string, key: key as string }
}

/** Opens a session and has it authorized, each by an application of its own. */
async function sessionOf(vault: StillVault, permissions: readonly string[], own: JsonObject = {}) {
  const opener = await holder(vault, { type: 'public', permissions: ['token:create'], ...own })
  const grantor = await holder(vault, { permissions: [...permissions], ...own })
  const opened = (await vault.call('POST', '/sessions', { key: opener.key })).json()
  const body = { nonce: opened['nonce']!, permissions: [...permissions] }
  const given = await vault.call('POST', '/sessions/authorize', { key: grantor.key, body })
  assert.equal(given.status, 200, given.text)
  return { session: opened['session_key'] as string, opener, grantor }
}

/** Creates a token in a transaction and returns its id. */
async function write(vault: StillVault, key: string, transaction: string): Promise<string> {
  const headers = { 'bt-transaction-id': transaction }
  const reply = await vault.call('POST', '/tokens', { key, headers, body: { data: 'x' } })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

/** Begins an asynchronous run and returns its id. */
async function beginJob({ vault, id }: CallbackStage, key: string): Promise<string> {
  const body = { args: { a: 1 } }
  const reply = await vault.call('POST', `/reactors/${id}/react-async`, { key, body })
  assert.equal(reply.status, 202, reply.text)
  return reply.json()['asyncReactorRequestId'] as string
}

async function resultOf({ vault }: CallbackStage, id: string) {
  const job = await vault.world.store.jobs.find(vault.tenantId, id)
  return openResult(await vault.world.keyring.open(vault.tenantId), job!)
}

async function events(vault: StillVault): Promise<JsonObject[]> {
  const reply = await manage(vault, 'GET', '/logs?size=100')
  return (reply.json()['data'] as JsonObject[]).filter((it) => it['entity_type'] !== 'log')
}

function assertRevoked(reply: Reply): void {
  assert.deepEqual([reply.status, reply.json()['code']], [409, 'transaction_revoked'], reply.text)
}
