import {
  makeRootKeyCheck,
  precedesAccessStates,
  precedesCheckpoints,
} from '../access/root-key-check.ts'
import { sealAccessRows } from '../access/seal-access-rows.ts'
import type { RewrappedKey } from '../ports/change.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { World } from '../ports/world.ts'
import { checkpointOf, unsealable, writeCheckpoint } from './checkpoint.ts'
import type { CheckpointRule } from './chain-flaws.ts'
import { flawSinceCheckpoint, verifyAuditLog } from './verification.ts'

type UpgradeWorld = Pick<World, 'clock' | 'keyring' | 'store'>

export interface AuditUpgrade {
  readonly tenants: number
  readonly refused: readonly { readonly tenantId: string; readonly error: unknown }[]
}

/**
 * Seals the access rows of every tenant of a store that an older version set up, and writes a checkpoint of its audit log, then
 * states under the root key that each has both. From then on a missing one is tampering. Returns the outcome; null, and does
 * nothing, if that was stated before.
 *
 * An audit log that does not verify gets no checkpoint, and `symbolon audit verify` keeps naming its flaw. Call before anything
 * else is written. Decisions 0081, 0082.
 */
export async function upgradeAuditLogs(
  world: UpgradeWorld,
  rootKey: KeyProvider,
): Promise<AuditUpgrade | null> {
  const { tenants } = world.store
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const installed = await tenants.rootKeyCheck()
    if (installed === null || !(await precedesAccessStates(rootKey, installed))) return null
    const rule = (await precedesCheckpoints(rootKey, installed))
      ? 'left to the service'
      : 'required'
    const ids = await tenants.ids()
    const refused: { tenantId: string; error: unknown }[] = []
    for (const id of ids) {
      // Again, for a read or a commit that failed by chance: a tenant that is refused never gets a checkpoint.
      await upgradeTenant(world, id, rule)
        .catch(() => upgradeTenant(world, id, rule))
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

async function upgradeTenant(
  world: UpgradeWorld,
  tenantId: string,
  rule: CheckpointRule,
): Promise<void> {
  const before = await world.store.auditLog.state(tenantId)
  if (before?.checkpoint != null && before.checkpoint.access === null) {
    // A checkpoint of before the upgrade that was put back has the events since after it.
    const flaw = await flawSinceCheckpoint(world, tenantId, before, { late: true })
    if (flaw !== null) throw unsealable(flaw)
  }
  // Once a checkpoint seals an access state, a missing one is tampering, even if the upgrade was interrupted.
  if (before?.checkpoint?.access == null) await sealAccessRows(world, tenantId)
  const state = await world.store.auditLog.state(tenantId)
  if (state?.checkpoint != null) {
    const written = await writeCheckpoint(world, tenantId, { upgrading: true })
    // Another server may have removed old events meanwhile.
    if (written === null && (await world.store.tenants.find(tenantId)) !== null) {
      throw new Error('Cannot checkpoint the audit log: it changed meanwhile')
    }
    return
  }
  // At most a minute of events: an older service made the first checkpoint a second after its start.
  const { flaw } = await verifyAuditLog(world, tenantId, { checkpoint: rule })
  if (flaw !== null) throw unsealable(flaw)
  if (state === null) throw new Error('Cannot checkpoint the audit log: it has no beginning')
  const { removed, last } = state
  const keys = await world.keyring.open(tenantId)
  const access = { revision: state.access!.revision, digest: state.access!.digest }
  const covered = { removed, last, at: world.clock.now(), access }
  const checkpoint = checkpointOf(keys, tenantId, covered)
  await world.store.commit(tenantId, [{ kind: 'put-audit-checkpoint', checkpoint }])
}

/** Each attempt loses to a tenant or key that was created or deleted meanwhile. */
const ATTEMPTS_MAX = 10
