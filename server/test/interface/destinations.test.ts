import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createIdentities } from '../../src/access/authenticate.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { DESTINATIONS_MAX } from '../../src/base/limits.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'
import { pathsOf } from '../kit/token-stage.ts'

const BACKEND = { name: 'backend', type: 'private', permissions: ['token:use'] }
const LISTED = { ...BACKEND, destinations: ['api.example.com', '*.example.org:8443'] }

describe('POST /applications answers', () => {
  test('201 with its destinations in one written form, each once, after the rules', async () => {
    const destinations = ['API.example.com.', '*.Example.org:8443', 'api.example.com']
    const reply = await post(await stillVault(), { ...BACKEND, destinations })
    assert.equal(reply.status, 201)
    assert.deepEqual(reply.json()['destinations'], LISTED.destinations)
    const members = Object.keys(reply.json())
    assert.equal(members[members.indexOf('rules') + 1], 'destinations')
  })

  test('201 with an empty list, which is another thing than none', async () => {
    const vault = await stillVault()
    const nowhere = await post(vault, { ...BACKEND, destinations: [] })
    assert.deepEqual(nowhere.json()['destinations'], [])
    for (const body of [BACKEND, { ...BACKEND, destinations: null }]) {
      assert.equal('destinations' in (await post(vault, body)).json(), false)
    }
  })

  const wrong: [about: string, body: JsonObject, path: string][] = [
    ['a URL', { ...BACKEND, destinations: ['a.example', 'https://b.example'] }, 'destinations[1]'],
    ['no text', { ...BACKEND, destinations: [null] }, 'destinations[0]'],
    ['no list', { ...BACKEND, destinations: 'a.example' }, 'destinations'],
    ['a long one', { ...BACKEND, destinations: ['a'.repeat(301)] }, 'destinations[0]'],
    ['too many', { ...BACKEND, destinations: names(DESTINATIONS_MAX + 1) }, 'destinations'],
    [
      'some for a management application',
      { name: 'a', type: 'management', permissions: ['log:read'], destinations: [] },
      'destinations',
    ],
  ]
  for (const [about, body, path] of wrong) {
    test(`400 to ${about}`, async () => {
      const reply = await post(await stillVault(), body)
      assert.equal(reply.status, 400)
      assert.deepEqual(pathsOf(reply), [path])
    })
  }

  test('201 with as many as there may be', async () => {
    const destinations = names(DESTINATIONS_MAX)
    const reply = await post(await stillVault(), { ...BACKEND, destinations })
    assert.deepEqual(reply.json()['destinations'], destinations)
  })
})

describe('PUT /applications/{id} answers', () => {
  test('200 with the destinations kept, where they are not mentioned', async () => {
    const vault = await stillVault()
    const { id } = (await post(vault, LISTED)).json()
    const { type: _, ...body } = BACKEND
    for (const it of [body, BACKEND]) {
      const reply = await put(vault, id as string, it)
      assert.deepEqual(reply.json()['destinations'], LISTED.destinations)
    }
    assert.deepEqual((await get(vault, id as string)).json()['destinations'], LISTED.destinations)
  })

  test('200 with the whole object sent back, nothing lost', async () => {
    const vault = await stillVault()
    const { key: _, ...made } = (await post(vault, LISTED)).json()
    const reply = await put(vault, made['id'] as string, made)
    const { modified_at: __, modified_by: ___, ...rest } = reply.json()
    assert.deepEqual(rest, made)
  })

  test('200 with others, with none allowed, and with the limit lifted by null', async () => {
    const vault = await stillVault()
    const id = (await post(vault, LISTED)).json()['id'] as string
    const others = await put(vault, id, { ...BACKEND, destinations: ['Other.example'] })
    assert.deepEqual(others.json()['destinations'], ['other.example'])
    const none = await put(vault, id, { ...BACKEND, destinations: [] })
    assert.deepEqual(none.json()['destinations'], [])
    const lifted = await put(vault, id, { ...BACKEND, destinations: null })
    assert.equal('destinations' in lifted.json(), false)
    assert.equal('destinations' in (await get(vault, id)).json(), false)
  })

  test('400 to what is no destination, and nothing is changed', async () => {
    const vault = await stillVault()
    const id = (await post(vault, LISTED)).json()['id'] as string
    const reply = await put(vault, id, { ...BACKEND, destinations: ['*'] })
    assert.equal(reply.status, 400)
    assert.deepEqual(pathsOf(reply), ['destinations[0]'])
    assert.deepEqual((await get(vault, id)).json()['destinations'], LISTED.destinations)
  })
})

describe('a caller', () => {
  test('with a key may send to what its application lists, from the change on', async () => {
    const vault = await stillVault()
    const { authenticate, store } = createIdentities(vault.world)
    const made = (await post(vault, LISTED)).json()
    const [key, id] = [made['key'] as string, made['id'] as string]
    assert.deepEqual((await authenticate(key)).destinations, LISTED.destinations)
    const before = (await store.applications.find(vault.tenantId, id))!
    const application = { ...before, destinations: [] }
    await store.commit(vault.tenantId, [
      { kind: 'update', entity: 'application', row: application },
      { kind: 'leave-access-state' },
    ])
    assert.deepEqual((await authenticate(key)).destinations, [])
    assert.equal((await authenticate(vault.managementKey)).destinations, null)
  })

  test('with a session may send to what opener and grantor both list, as they do now', async () => {
    const vault = await stillVault()
    const { authenticate } = createIdentities(vault.world)
    const opener = { name: 'page', type: 'public', permissions: ['token:create'] }
    const page = await post(vault, { ...opener, destinations: ['*.example.org', 'b.example'] })
    const grantor = (await post(vault, LISTED)).json()
    const call = (path: string, key: string, body?: JsonObject): Promise<Reply> =>
      vault.call('POST', path, { key, ...(body !== undefined && { body }) })
    const opened = (await call('/sessions', page.json()['key'] as string)).json()
    const authorized = await call('/sessions/authorize', grantor['key'] as string, {
      nonce: opened['nonce']!,
      permissions: ['token:use'],
    })
    assert.equal(authorized.status, 200)
    const session = opened['session_key'] as string
    assert.deepEqual((await authenticate(session)).destinations, ['*.example.org:8443'])

    await put(vault, grantor['id'] as string, { ...BACKEND, destinations: ['b.example'] })
    vault.world.clock.pass(1_000)
    assert.deepEqual((await authenticate(session)).destinations, ['b.example'])
    await put(vault, grantor['id'] as string, { ...BACKEND, destinations: null })
    vault.world.clock.pass(1_000)
    assert.deepEqual((await authenticate(session)).destinations, ['*.example.org', 'b.example'])
  })
})

function names(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `host-${n}.example`)
}

async function post({ call, managementKey: key }: StillVault, body: JsonObject): Promise<Reply> {
  return await call('POST', '/applications', { key, body })
}

async function put(vault: StillVault, id: string, body: JsonObject): Promise<Reply> {
  return await vault.call('PUT', `/applications/${id}`, { key: vault.managementKey, body })
}

async function get(vault: StillVault, id: string): Promise<Reply> {
  return await vault.call('GET', `/applications/${id}`, { key: vault.managementKey })
}
