import { makeRootKeyCheck, precedesCheckpoints } from '../access/root-key-check.ts'
import type { RewrappedKey } from '../ports/change.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { World } from '../ports/world.ts'
import { checkpointOf, writeCheckpoint } from './checkpoint.ts'
import { verifyAuditLog } from './verification.ts'

type UpgradeWorld = Pick<World, 'clock' | 'keyring' | 'store'>

export interface AuditUpgrade {
  readonly tenants: number
  readonly refused: readonly { readonly tenantId: string; readonly error: unknown }[]
}

/**
 * Writes a checkpoint of every audit log of a store that an older version set up, then states under the root key that each has
 * one. From then on a missing checkpoint is tampering. Returns the outcome; null, and does nothing, if that was stated before.
 *
 * An audit log that does not verify gets no checkpoint, and `symbolon audit verify` keeps naming its flaw. Call before anything
 * else is written. Decision 0081.
 */
export async function upgradeAuditLogs(
  world: UpgradeWorld,
  rootKey: KeyProvider,
): Promise<AuditUpgrade | null> {
  const { tenants } = world.store
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const installed = await tenants.rootKeyCheck()
    if (installed === null || !(await precedesCheckpoints(rootKey, installed))) return null
    const ids = await tenants.ids()
    const refused: { tenantId: string; error: unknown }[] = []
    for (const id of ids) {
      // Again, for a read or a commit that failed by chance: a tenant that is refused never gets a checkpoint.
      await upgradeAuditLog(world, id)
        .catch(() => upgradeAuditLog(world, id))
        .catch((error: unknown) => refused.push({ tenantId: id, error }))
    }
    const keys: RewrappedKey[] = []
    for (const tenantId of ids) {
      for (const key of await tenants.keys(tenantId)) {
        keys.push({ tenantId, before: key.wrapped, key })
      }
    }
    // Replaces the root key by itself. A conflict means that a tenant or a key was added meanwhile.
    const conflict = await world.store.commit(ids[0] ?? '', [
      {
        kind: 'replace-root-key',
        before: installed.id,
        rootKey: await makeRootKeyCheck(rootKey),
        keys,
      },
    ])
    if (conflict === null) return { tenants: ids.length, refused }
  }
  throw new Error('Cannot upgrade the audit logs: tenants and their keys change too often')
}

async function upgradeAuditLog(world: UpgradeWorld, tenantId: string): Promise<void> {
  const state = await world.store.auditLog.state(tenantId)
  if (state?.checkpoint != null) {
    await writeCheckpoint(world, tenantId)
    return
  }
  // At most a minute of events: an older service made the first checkpoint a second after its start.
  const { flaw } = await verifyAuditLog(world, tenantId, { checkpoint: 'left to the service' })
  if (flaw !== null || state === null) {
    throw new Error(`Cannot checkpoint the audit log: event ${flaw?.number} ${flaw?.what}`)
  }
  const { removed, last } = state
  const keys = await world.keyring.open(tenantId)
  const checkpoint = checkpointOf(keys, tenantId, { removed, last, at: world.clock.now() })
  await world.store.commit(tenantId, [{ kind: 'put-audit-checkpoint', checkpoint }])
}

/** Each attempt loses to a tenant or key that was created or deleted meanwhile. */
const ATTEMPTS_MAX = 10
