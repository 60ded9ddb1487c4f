import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setUp } from '../access/applications/set-up.ts'
import { stillWorld, thinKeyProvider, type StillWorld } from '../../test/kit/still-world.ts'
import { withCommit } from '../ports/with-commit.ts'
import { upgradeAuditLogs } from './upgrade.ts'
import { verifyAuditLog } from './verification.ts'

const rootKey = thinKeyProvider()

test('an upgrade does not give a tenant up for a read or a commit that fails once', async () => {
  for (const failing of ['state', 'commit'] as const) {
    const { world, tenants } = await olderVault(2)
    const { store } = world
    let left = 1
    const failOnce = (): void => {
      if (left-- > 0) throw new Error('the connection is gone')
    }
    const shaky = withCommit(
      {
        ...store,
        auditLog: {
          ...store.auditLog,
          state: async (id) => {
            if (failing === 'state') failOnce()
            return await store.auditLog.state(id)
          },
        },
      },
      async (...asked) => {
        if (failing === 'commit') failOnce()
        return await store.commit(...asked)
      },
    )
    const upgrade = await upgradeAuditLogs({ ...world, store: shaky }, rootKey)
    assert.deepEqual(upgrade?.refused, [])
    for (const it of tenants) assert.equal((await verifyAuditLog(world, it)).flaw, null)
  }
})

test('an upgrade that is interrupted after any commit is completed by the next, and vouches for no more', async () => {
  for (let commits = 0; commits <= 4; commits++) {
    const { world, tenants } = await olderVault(4)
    // The third lost its first event.
    const [cut] = [tenants[2]!]
    const { auditLog } = world.store
    const store = {
      ...world.store,
      auditLog: {
        ...auditLog,
        rowsAfter: async (...asked: Parameters<typeof auditLog.rowsAfter>) =>
          (await auditLog.rowsAfter(...asked)).filter((it) => asked[0] !== cut || it.number > 1),
      },
    }
    let left = commits
    const killed = withCommit(store, async (...asked) => {
      if (left-- <= 0) throw new Error('killed')
      return await store.commit(...asked)
    })
    await upgradeAuditLogs({ ...world, store: killed }, rootKey).catch(() => {})
    const again = await upgradeAuditLogs({ ...world, store }, rootKey)
    if (commits < 4)
      assert.deepEqual(
        again?.refused.map((it) => it.tenantId),
        [cut],
      )
    else assert.equal(again, null)
    for (const it of tenants) {
      const { flaw, sealed } = await verifyAuditLog({ ...world, store }, it)
      assert.deepEqual([flaw?.number, sealed], it === cut ? [1, 0] : [undefined, 3])
    }
    assert.equal(await upgradeAuditLogs({ ...world, store }, rootKey), null)
  }
})

/** Returns a vault of a version that left the first checkpoint to the service, which made none. */
async function olderVault(count: number): Promise<{ world: StillWorld; tenants: string[] }> {
  const world = stillWorld()
  const { store } = world
  const older = withCommit(store, (tenantId, changes) =>
    store.commit(
      tenantId,
      changes.filter((it) => it.kind !== 'put-audit-checkpoint'),
    ),
  )
  const tenants: string[] = []
  for (let n = 0; n < count; n++) {
    const plan = 'enterprise'
    const made = await setUp({ ...world, store: older }, rootKey, { name: `tenant ${n}`, plan })
    tenants.push(made.tenantId)
  }
  const keys = []
  for (const tenantId of tenants) {
    for (const key of await store.tenants.keys(tenantId)) {
      keys.push({ tenantId, before: key.wrapped, key })
    }
  }
  const known = Buffer.from('symbolon: this root key is right')
  const check = await rootKey.wrap(known, ['root key check'])
  await store.commit(tenants[0]!, [
    { kind: 'replace-root-key', before: rootKey.id, rootKey: { id: rootKey.id, check }, keys },
  ])
  return { world, tenants }
}
