/** A vault that is two servers on one database, called in turn. `npm run test:two` runs every vault test that way. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import { clearDeletedTenants } from '../../src/tenants/clear-deleted-tenants.ts'
import type { World } from '../../src/ports/world.ts'
import { bodyOf, callbackStage } from '../kit/callback-stage.ts'
import { watched, type StillWorld } from '../kit/still-world.ts'
import { REVEAL_ALL, tokenStage } from '../kit/token-stage.ts'

describe('Of two servers', () => {
  test('each makes what the other reads, and both are asked', async () => {
    const commits: number[] = []
    const { tokenize, reveal, stored } = await tokenStage({ servers: 2, change: counting(commits) })
    const id = (await tokenize('one')) as string
    const other = (await tokenize('two')) as string
    assert.deepEqual([await reveal(other), await reveal(id)], ['two', 'one'])
    assert.equal(stored().length, 2)
    assert.equal(commits.length, 2)
    for (const made of commits) assert.ok(made > 0)
  })

  test('each honours a change of rights that the other made', async () => {
    const { vault, key, applicationId, tryTokenize } = await tokenStage({ servers: 2 })
    // Both know the key by now.
    for (const it of ['one', 'two']) assert.equal((await tryTokenize(it)).status, 200)
    const path = `/applications/${applicationId}`
    const body = { name: 'test', permissions: ['token:read'] }
    const changed = await vault.call('PUT', path, { key: vault.managementKey, body })
    assert.equal(changed.status, 200, changed.text)
    for (const it of ['one', 'two']) assert.equal((await tryTokenize(it)).status, 403)
    const gone = await vault.call('DELETE', path, { key: vault.managementKey })
    assert.equal(gone.status, 204)
    for (let n = 0; n < 2; n++) {
      assert.equal((await vault.call('GET', '/permissions', { key })).status, 401)
    }
  })

  test('one commits the transaction that the other began', async () => {
    const { vault, key, reveal } = await tokenStage({ servers: 2 })
    const begun = await vault.call('POST', '/transactions', { key })
    const id = begun.json()['id'] as string
    const headers = { 'bt-transaction-id': id }
    const made = await vault.call('POST', '/tokens', { key, headers, body: { data: 'x' } })
    assert.equal(made.status, 201, made.text)
    const ended = await vault.call('POST', `/transactions/${id}/commit`, { key })
    assert.equal(ended.status, 200, ended.text)
    assert.equal(await reveal(made.json()['id']), 'x')
  })

  test('only one makes what both are asked for at once with one idempotency key', async () => {
    const { vault, key, stored } = await tokenStage({ servers: 2 })
    const headers = { 'bt-idempotency-key': 'once' }
    const ask = () => vault.call('POST', '/tokens', { key, headers, body: { data: 'x' } })
    const replies = await Promise.all(Array.from({ length: 10 }, ask))
    const answers = [...replies, await ask(), await ask()]
    const statuses = new Set(answers.map((it) => it.status))
    assert.ok(statuses.isSubsetOf(new Set([201, 409])), [...statuses].join())
    const ids = answers.filter((it) => it.status === 201).map((it) => it.json()['id'])
    assert.equal(new Set(ids).size, 1)
    const kept = await vault.world.store.tokens.find(
      vault.tenantId,
      stored().map((it) => it.id),
    )
    assert.deepEqual(
      kept.map((it) => it.id),
      [ids[0]],
    )
  })

  test('the one runs and delivers what the other accepted, once', async () => {
    const { invoke, work, sent, runner } = await callbackStage({ servers: 2 })
    for (let n = 0; n < 4; n++) await invoke({ args: n })
    await work()
    await work()
    const results = sent.map((it) => (bodyOf(it) as JsonObject)['raw'] as number)
    assert.deepEqual(new Set(results), new Set([0, 1, 2, 3]))
    assert.equal(runner.ran.length, 4)
  })

  test('neither keeps the keys of a tenant in memory that the other has deleted', async () => {
    const keyrings: StillWorld['keyring'][] = []
    const { vault, key, tryTokenize } = await tokenStage({
      servers: 2,
      change: (world) => {
        keyrings.push(world.keyring)
        return world
      },
    })
    for (const it of ['one', 'two']) assert.equal((await tryTokenize(it)).status, 200)
    const reader = await vault.keyFor({ rules: [REVEAL_ALL] })
    const deleted = await vault.call('DELETE', '/tenants/self', { key: vault.managementKey })
    assert.equal(deleted.status, 204)
    for (const it of [key, reader, key, reader]) {
      assert.equal((await vault.call('GET', '/permissions', { key: it })).status, 401)
    }
    for (const keyring of keyrings) {
      await clearDeletedTenants({ ...vault.world, keyring })
      await assert.rejects(async () => await keyring.open(vault.tenantId), /has none/)
    }
  })
})

/** Counts the commits of each server. */
function counting(commits: number[]): (world: StillWorld) => World {
  return (world) => {
    const place = commits.push(0) - 1
    return { ...world, store: watched(world.store, () => void commits[place]!++) }
  }
}
