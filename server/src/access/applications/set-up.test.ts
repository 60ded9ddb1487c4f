import { DEFAULT_TENANT_SETTINGS } from '../../base/access.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeName } from '../../../test/kit/change-name.ts'
import { MemoryStore } from '../../../test/kit/memory-store/memory-store.ts'
import { stillWorld, thinKeyProvider, watched } from '../../../test/kit/still-world.ts'
import type { Change } from '../../ports/change.ts'
import { hashApiKey } from '../api-key.ts'
import { permissionsOf } from '../permissions.ts'
import { checkRootKey } from '../root-key-check.ts'
import { setUp } from './set-up.ts'

const FIRST = { name: 'first', plan: 'enterprise' } as const

test('setUp() makes a tenant whose key may manage everything', async () => {
  const world = stillWorld()
  const { tenantId, applicationId, apiKey } = await setUp(world, thinKeyProvider(), FIRST)
  const holder = await world.store.applications.findByKeyHash(hashApiKey(apiKey))
  assert.equal(holder?.tenant.id, tenantId)
  assert.equal(holder.tenant.name, 'first')
  assert.equal(holder.tenant.plan, 'enterprise')
  assert.deepEqual(holder.tenant.settings, DEFAULT_TENANT_SETTINGS)
  assert.equal(holder.application.id, applicationId)
  assert.equal(holder.application.type, 'management')
  assert.deepEqual(holder.application.permissions, permissionsOf('management'))
  assert.equal((await world.store.tenants.keys(tenantId)).length, 3)
})

test('setUp() commits once, and installs the root key with the first tenant only', async () => {
  const commits: string[][] = []
  const kinds = (changes: readonly Change[]): void => void commits.push(changes.map(changeName))
  const world = { ...stillWorld(), store: watched(new MemoryStore(), kinds) }
  await setUp(world, thinKeyProvider(), FIRST)
  await setUp(world, thinKeyProvider(), { name: 'second', plan: 'standard' })
  const tenant = [
    'insert-tenant',
    'insert application',
    'insert application_key',
    'put-access-state',
    'append-audit-events',
    'put-audit-checkpoint',
  ]
  assert.deepEqual(commits, [
    ['install', ...tenant],
    ['require-root-key', ...tenant],
  ])
  assert.equal(await world.store.tenants.count(), 2)
})

test('setUp() refuses a name that exists and changes nothing', async () => {
  const world = stillWorld()
  const { tenantId } = await setUp(world, thinKeyProvider(), FIRST)
  await assert.rejects(setUp(world, thinKeyProvider(), { name: 'first', plan: 'standard' }), {
    name: 'SetUpError',
    code: 'name-taken',
  })
  assert.equal(await world.store.tenants.count(), 1)
  assert.equal((await world.store.tenants.named('first'))[0]?.id, tenantId)
})

test('setUp() takes names of 1 to 200 characters and none that would break a line', async () => {
  const world = stillWorld()
  for (const name of ['', 'x'.repeat(201), 'two\nlines', 'nul\0']) {
    await assert.rejects(setUp(world, thinKeyProvider(), { name, plan: 'standard' }), {
      code: 'name-invalid',
    })
  }
  assert.deepEqual(world.committed, [])
  for (const name of ['x', 'x'.repeat(200), 'Käse & Co.']) {
    await setUp(world, thinKeyProvider(), { name, plan: 'standard' })
  }
})

test('setUp() makes both tenants when two begin on an empty store at once', async () => {
  const world = stillWorld()
  const [a, b] = await Promise.all([
    setUp(world, thinKeyProvider(), FIRST),
    setUp(world, thinKeyProvider(), { name: 'second', plan: 'standard' }),
  ])
  assert.equal(await world.store.tenants.count(), 2)
  assert.notEqual(a.tenantId, b.tenantId)
})

test('setUp() refuses another root key, though it comes second by a moment', async () => {
  const world = stillWorld()
  const both = await Promise.allSettled([
    setUp(world, thinKeyProvider('root-a'), FIRST),
    setUp(world, thinKeyProvider('root-b'), { name: 'second', plan: 'standard' }),
  ])
  assert.deepEqual(both.map((it) => it.status).sort(), ['fulfilled', 'rejected'])
  assert.equal(await world.store.tenants.count(), 1)
})

test('checkRootKey() takes any root key for an empty store, then only that one', async () => {
  const world = stillWorld()
  await checkRootKey(world.store, thinKeyProvider('root-b'))
  await setUp(world, thinKeyProvider('root-a'), FIRST)
  await checkRootKey(world.store, thinKeyProvider('root-a'))
  await assert.rejects(checkRootKey(world.store, thinKeyProvider('root-b')), {
    code: 'root-key-other',
    message: /root key root-a, but root key root-b was given: nothing was changed/,
  })
  await assert.rejects(setUp(world, thinKeyProvider('root-b'), { ...FIRST, name: 'second' }), {
    code: 'root-key-other',
  })
  assert.equal(await world.store.tenants.count(), 1)
})

test('checkRootKey() is not content with the right name', async () => {
  const world = stillWorld()
  await setUp(world, thinKeyProvider('root-a'), FIRST)
  const impostor = { ...thinKeyProvider('root-b'), id: 'root-a' }
  await assert.rejects(checkRootKey(world.store, impostor), { code: 'root-key-damaged' })
  const liar = { ...thinKeyProvider('root-a'), unwrap: async () => new Uint8Array(32) }
  await assert.rejects(checkRootKey(world.store, liar), { code: 'root-key-damaged' })
})

test('setUp() hands the key to its caller alone', async () => {
  const world = stillWorld()
  const { apiKey } = await setUp(world, thinKeyProvider(), FIRST)
  assert.equal(JSON.stringify([world.committed, world.logged]).includes(apiKey.slice(18)), false)
})
