import { AUDIT_EVENTS_AT_ONCE } from '../base/limits.ts'
import { timeOfAuditEvent } from '../ports/audit-log.ts'
import type { World } from '../ports/world.ts'
import { isUnchanged, nextCheckpoint } from './checkpoint.ts'
import { firstFlaw } from './chain-flaws.ts'

/**
 * Removes events older than `days`, in every tenant, oldest first, a chunk at a time.
 *
 * The rest begins where the last removed event ended; a checkpoint of that position is in the same commit. Events that do not
 * continue the chain are evidence and stay, with everything after them; that is logged.
 */
export async function sweepAuditLogs(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  days: number,
): Promise<void> {
  const before = world.clock.now() - days * DAY_MS
  for (const tenantId of await world.store.auditLog.tenantIds('all')) {
    try {
      // The events of a deleted tenant are removed elsewhere, without its keys, which are gone.
      if ((await world.store.tenants.find(tenantId)) === null) continue
      while (await sweepChunk(world, tenantId, before)) await world.clock.yield()
    } catch (error) {
      world.log.error('record_not_swept', error, { tenant: tenantId })
    }
  }
}

/** Returns whether there may be more. */
async function sweepChunk(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  tenantId: string,
  before: number,
): Promise<boolean> {
  const { auditLog } = world.store
  const state = await auditLog.state(tenantId)
  if (state === null) return false
  const rows = await auditLog.rowsAfter(tenantId, state.removed.number, AUDIT_EVENTS_AT_ONCE)
  const young = rows.findIndex((it) => timeOfAuditEvent(it.entry) >= before)
  const old = young < 0 ? rows : rows.slice(0, young)
  const last = old.at(-1)
  if (last === undefined) return false
  try {
    const flaw = firstFlaw(state.removed, old)
    if (flaw !== null) throw new Error(`Cannot remove event ${flaw.number}: it ${flaw.what}`)
    const { number, listed, hash } = last
    const removed = { number, listed, hash }
    const checkpoint = await nextCheckpoint(world, tenantId, state, removed)
    await world.store.commit(tenantId, [
      { kind: 'trim-audit-log', removed },
      { kind: 'put-audit-checkpoint', checkpoint },
    ])
  } catch (error) {
    // Another server may have removed some of them, or the tenant been deleted, between two reads.
    if (isUnchanged(state, await auditLog.state(tenantId))) throw error
    return true
  }
  return young < 0
}

const DAY_MS = 24 * 60 * 60 * 1000
