import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stillWorld, thinKeyProvider } from '../../../test/kit/still-world.ts'
import { APPLICATION_KEYS_MAX } from '../../base/limits.ts'
import { decodeAuditEvent } from '../../ports/audit-log.ts'
import type { StoredApplication } from '../../ports/stored.ts'
import { hashApiKey } from '../api-key.ts'
import { permissionsOf } from '../permissions.ts'
import { issueKey } from './issue-key.ts'
import {
  parseRecoveryNotice,
  recoverManagementKey,
  type RecoveryRequest,
} from './recover-management-key.ts'
import { setUp } from './set-up.ts'

async function stage() {
  const world = stillWorld()
  const made = await setUp(world, thinKeyProvider(), { name: 'first', plan: 'enterprise' })
  const recover = (request: Partial<RecoveryRequest>) =>
    recoverManagementKey(world, thinKeyProvider(), {
      tenant: made.tenantId,
      applicationId: null,
      ...request,
    })
  return { world, made, recover }
}

describe('recoverManagementKey()', () => {
  test('creates an application with every management permission, for a tenant named by id or name', async () => {
    const { world, made, recover } = await stage()
    for (const tenant of [made.tenantId, 'first']) {
      const { tenantId, applicationId, apiKey } = await recover({ tenant })
      assert.equal(tenantId, made.tenantId)
      assert.notEqual(applicationId, made.applicationId)
      const holder = await world.store.applications.findByKeyHash(hashApiKey(apiKey))
      assert.equal(holder?.application.id, applicationId)
      assert.equal(holder.application.type, 'management')
      assert.deepEqual(holder.application.permissions, permissionsOf('management'))
    }
  })

  test('refuses a name that several tenants have, since tenants rename themselves', async () => {
    const { world, made, recover } = await stage()
    const other = await setUp(world, thinKeyProvider(), { name: 'other', plan: 'enterprise' })
    const tenant = { ...(await world.store.tenants.find(other.tenantId))!, name: 'first' }
    await world.store.commit(tenant.id, [{ kind: 'update', entity: 'tenant', row: tenant }])
    const ids = [made.tenantId, other.tenantId].sort().join(', ')
    await assert.rejects(
      recover({ tenant: 'first' }),
      new RegExp(`2 tenants are named "first": pass the id of one of ${ids}`),
    )
    assert.equal((await recover({ tenant: made.tenantId })).tenantId, made.tenantId)
  })

  test('adds a key to the named application, and changes nothing else of it', async () => {
    const { world, made, recover } = await stage()
    const before = await world.store.applications.find(made.tenantId, made.applicationId)
    const { applicationId, apiKey } = await recover({ applicationId: made.applicationId })
    assert.equal(applicationId, made.applicationId)
    const holder = await world.store.applications.findByKeyHash(hashApiKey(apiKey))
    assert.deepEqual(holder?.application, before)
    const keys = await world.store.applications.keys(made.tenantId, applicationId)
    assert.deepEqual(
      keys.map((it) => it.version),
      [1, 2],
    )
  })

  test('is in the audit log with its own trace id, and leaves a notice, in the same commit', async () => {
    const { world, made, recover } = await stage()
    const { applicationId } = await recover({})
    const rows = await world.store.auditLog.rowsAfter(made.tenantId, 0, 100)
    const events = rows
      .map((it) => decodeAuditEvent(it.entry))
      .filter((it) => it.traceId === 'key-recovery')
    const [key] = await world.store.applications.keys(made.tenantId, applicationId)
    assert.deepEqual(
      events.map((it) => [it.entityType, it.operation, it.entityIds, it.applicationId, it.keyId]),
      [
        ['application', 'create', [applicationId], applicationId, key!.id],
        ['application_key', 'create', [key!.id], applicationId, key!.id],
      ],
    )
    const [notice] = await world.store.tenants.notices()
    assert.deepEqual(parseRecoveryNotice(notice!.text), {
      tenant: made.tenantId,
      application: applicationId,
      key: key!.id,
    })
  })

  test('lists the tenants, if they are few, when none or an unknown one is named', async () => {
    const { world, made, recover } = await stage()
    const list = `pass the id or the name of one of ${made.tenantId} \\(first\\)\\.`
    await assert.rejects(recover({ tenant: null }), new RegExp(`^RecoveryError: --tenant.*${list}`))
    const other = '00000000-0000-4000-8000-000000000001'
    for (const tenant of ['other', other, ''])
      await assert.rejects(recover({ tenant }), new RegExp(`no tenant "${tenant}": ${list}`))
    for (let n = 0; n < 20; n++) {
      await setUp(world, thinKeyProvider(), { name: `${n}`, plan: 'standard' })
    }
    await assert.rejects(recover({ tenant: 'other' }), /one of the 21 tenants\.$/)
    await assert.rejects(
      recoverManagementKey(stillWorld(), thinKeyProvider(), { tenant: 'x', applicationId: null }),
      /There is no tenant: create one with symbolon init/,
    )
  })

  test('refuses to add a key to an application that is absent, of another type, expired or full', async () => {
    const { world, made, recover } = await stage()
    const { tenantId, applicationId } = made
    const found = (await world.store.applications.find(tenantId, applicationId))!
    const add = async (n: number, changed: Partial<StoredApplication>): Promise<string> => {
      const id = `00000000-0000-4000-8000-00000000000${n}`
      const application = { ...found, id, ...changed }
      await world.store.commit(tenantId, [
        { kind: 'insert', entity: 'application', row: application },
        { kind: 'leave-access-state' },
      ])
      return id
    }
    const cases: [id: string, what: RegExp][] = [
      ['00000000-0000-4000-8000-000000000001', /there is no such application/],
      ['x', /there is no such application/],
      [await add(2, { type: 'private' }), /it is of type private, not management/],
      [await add(3, { expiresAt: world.clock.now() }), /it has expired/],
    ]
    for (const [id, what] of cases) await assert.rejects(recover({ applicationId: id }), what)
    for (let version = 2; version <= APPLICATION_KEYS_MAX; version++) {
      const { stored } = issueKey(world.random, found, { version, by: found.id, at: 1 })
      await world.store.commit(tenantId, [
        { kind: 'insert', entity: 'application_key', row: stored },
        { kind: 'leave-access-state' },
      ])
    }
    await assert.rejects(recover({ applicationId }), /it has 10 keys already/)
    assert.deepEqual(await world.store.tenants.notices(), [])
  })

  test('is refused with another root key than the one of the data, and changes nothing', async () => {
    const { world, made } = await stage()
    const request = { tenant: made.tenantId, applicationId: null }
    await assert.rejects(recoverManagementKey(world, thinKeyProvider('other'), request), {
      code: 'root-key-other',
    })
    assert.deepEqual(await world.store.tenants.notices(), [])
  })
})

test('parseRecoveryNotice() accepts only its own notices, with valid ids', () => {
  for (const text of ['', 'null', '1', '[]', '{}', '{"kind":"management_key_recovered"}']) {
    assert.equal(parseRecoveryNotice(text), null)
  }
  const id = '00000000-0000-4000-8000-000000000001'
  const notice = { kind: 'management_key_recovered', tenant: id, application: id, key: 'a\nb' }
  assert.equal(parseRecoveryNotice(JSON.stringify(notice)), null)
})
