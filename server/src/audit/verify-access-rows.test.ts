import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setUp } from '../access/applications/set-up.ts'
import { MemoryStore } from '../../test/kit/memory-store/memory-store.ts'
import type { AccessRowReader, Store } from '../ports/store.ts'
import { stillWorld, thinKeyProvider, type StillWorld } from '../../test/kit/still-world.ts'
import { accessChecker, verifyAccessRows } from './verify-access-rows.ts'

test('a flaw is logged once, and again after it was gone', async () => {
  const { world, tenantId } = await oneTenant()
  let rows: AccessRowReader = without
  const store: Store = { ...world.store, accessRows: (...it) => rows(...it) }
  const check = accessChecker({ ...world, store })
  await check()
  await check()
  assert.deepEqual(world.logged.map(eventOf), ['access_altered'])
  const [[, , fields]] = world.logged as [[string, Error, unknown]]
  assert.deepEqual(fields, { tenant: tenantId })
  rows = world.store.accessRows
  await check()
  rows = without
  await check()
  assert.deepEqual(world.logged.map(eventOf), ['access_altered', 'access_altered'])
})

test('rows that change while they are read are read again, and are no flaw', async () => {
  const { world, tenantId } = await oneTenant()
  let chunks = 0
  const accessRows: AccessRowReader = async function* (id, table) {
    if (chunks++ > 1) yield* world.store.accessRows(id, table)
  }
  const auditLog = { ...world.store.auditLog }
  let asked = 0
  auditLog.state = async (id) => {
    const state = (await world.store.auditLog.state(id))!
    // The second answer is that of after a change.
    return asked++ === 1 ? { ...state, access: { ...state.access!, revision: 99 } } : state
  }
  const store: Store = { ...world.store, auditLog, accessRows }
  assert.deepEqual(await verifyAccessRows({ ...world, store }, tenantId), {
    revision: 2,
    flaw: null,
  })
  assert.ok(asked >= 3)
})

test('a tenant whose keys cannot be read is logged as not verified, and a deleted one not at all', async () => {
  const { world, tenantId } = await oneTenant()
  const keyring = {
    ...world.keyring,
    open: async () => {
      throw new Error('Cannot unwrap a key')
    },
  }
  const check = accessChecker({ ...world, keyring })
  await check()
  await check()
  assert.deepEqual(world.logged.map(eventOf), ['access_not_verified'])

  const tenants = { ...world.store.tenants, ids: async () => [tenantId] }
  await world.store.commit(tenantId, [{ kind: 'delete-tenant', at: world.clock.now() }])
  await accessChecker({ ...world, keyring, store: { ...world.store, tenants } })()
  assert.equal(world.logged.length, 1)
})

async function oneTenant(): Promise<{ world: StillWorld; tenantId: string }> {
  const world = stillWorld(new MemoryStore())
  const { tenantId } = await setUp(world, thinKeyProvider(), { name: 'a', plan: 'enterprise' })
  return { world, tenantId }
}

const without: AccessRowReader = async function* () {
  yield []
}

function eventOf(it: unknown): unknown {
  return (it as unknown[])[0]
}
