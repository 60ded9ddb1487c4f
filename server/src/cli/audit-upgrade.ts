import { auditCheckpointer } from '../audit/checkpoint.ts'
import { upgradeAuditLogs } from '../audit/upgrade.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { World } from '../ports/world.ts'

/** Upgrades the audit logs of an older store, and logs that. */
export async function upgradeAndLog(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  rootKey: KeyProvider,
): Promise<void> {
  const upgrade = await upgradeAuditLogs(world, rootKey)
  if (upgrade === null) return
  const { tenants, refused } = upgrade
  for (const { tenantId, error } of refused) {
    world.log.error('record_unsealed', error, { tenant: tenantId })
  }
  world.log.info('audit_logs_upgraded', { tenants, sealed: tenants - refused.length })
}

/** Upgrades the audit logs of an older store, and says so: for commands, which have no log. */
export async function upgradeAndSay(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  rootKey: KeyProvider,
  say: (line: string) => void,
): Promise<void> {
  const upgrade = await upgradeAuditLogs(world, rootKey)
  if (upgrade === null) return
  const { tenants, refused } = upgrade
  for (const { tenantId, error } of refused) {
    const why = error instanceof Error ? error.message : String(error)
    say(`tenant ${tenantId}: ${why}`)
  }
  say(`audit logs upgraded: ${tenants - refused.length} of ${tenants} tenants have a checkpoint`)
}

/**
 * Makes checkpoints of the events that a command wrote: no service may run for days, and they would seem to have been without one
 * for too long. Never rejects, since the next start makes them.
 */
export async function checkpointAtEnd(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
): Promise<void> {
  await auditCheckpointer(world)().catch(() => {})
}
