import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import { stillVault, type StillVault } from '../kit/still-vault.ts'

/** The forms that the end of a token has. */
const EXPIRIES = [
  ['2030-08-26T19:23:57-07:00', '2030-08-27T02:23:57.000+00:00'],
  ['2030-08-26T19:23:57Z', '2030-08-26T19:23:57.000+00:00'],
  ['2030-08-26T19:23:57', '2030-08-26T19:23:57.000+00:00'],
  ['2030-08-26', '2030-08-26T00:00:00.000+00:00'],
  ['8/26/2030 7:23:57 PM -07:00', '2030-08-27T02:23:57.000+00:00'],
  ['9/27/2030', '2030-09-27T00:00:00.000+00:00'],
] as const

const READER = { type: 'private', permissions: ['token:read'] }

describe('an application that has expired', () => {
  test('is in no list from that instant on, asked for by its id or not, and is not counted', async () => {
    const vault = await stillVault()
    const id = await made(vault, { expires_at: '2026-03-01T12:00:01Z' })
    const other = await made(vault)
    vault.world.clock.pass(999)
    assert.deepEqual(await listed(vault, 'type=private'), { total: 2, ids: new Set([id, other]) })
    assert.deepEqual(await listed(vault, `id=${id}`), { total: 1, ids: new Set([id]) })
    vault.world.clock.pass(1)
    assert.deepEqual(await listed(vault, 'type=private'), { total: 1, ids: new Set([other]) })
    assert.deepEqual(await listed(vault, `id=${id}`), { total: 0, ids: new Set() })
  })
})

describe('the id of an application', () => {
  test('is the same in upper case: in a path, with a key of it, and in a list', async () => {
    const vault = await stillVault()
    const id = await made(vault)
    const key = vault.managementKey
    const path = `/applications/${id.toUpperCase()}`
    assert.equal((await vault.call('GET', path, { key })).json()['id'], id)
    assert.deepEqual(await listed(vault, `id=${id.toUpperCase()}`), {
      total: 1,
      ids: new Set([id]),
    })
    const second = (await vault.call('POST', `${path}/keys`, { key })).json()
    const keyPath = `${path}/keys/${(second['id'] as string).toUpperCase()}`
    assert.equal((await vault.call('GET', keyPath, { key })).json()['id'], second['id'])
    assert.equal((await vault.call('DELETE', keyPath, { key })).status, 204)
    assert.equal((await vault.call('DELETE', path, { key })).status, 204)
    assert.equal((await vault.call('GET', `/applications/${id}`, { key })).status, 404)
  })
})

describe('expires_at of an application', () => {
  for (const [sent, shown] of EXPIRIES) {
    test(`may be ${sent}, shown as ${shown}`, async () => {
      const vault = await stillVault()
      const body = { ...READER, name: 'reader', expires_at: sent }
      const reply = await vault.call('POST', '/applications', { key: vault.managementKey, body })
      assert.equal(reply.json()['expires_at'], shown, reply.text)
    })
  }
})

async function made(vault: StillVault, own: JsonObject = {}): Promise<string> {
  const body = { ...READER, name: 'reader', ...own }
  const reply = await vault.call('POST', '/applications', { key: vault.managementKey, body })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

async function listed(
  vault: StillVault,
  query: string,
): Promise<{ total: unknown; ids: Set<string> }> {
  const reply = await vault.call('GET', `/applications?${query}`, { key: vault.managementKey })
  const { pagination, data } = reply.json() as unknown as {
    pagination: JsonObject
    data: { id: string }[]
  }
  return { total: pagination['total_items'], ids: new Set(data.map((it) => it.id)) }
}
