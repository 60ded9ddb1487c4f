import { AUDIT_EVENTS_AT_ONCE } from '../base/limits.ts'
import { TimeSlice } from '../base/time-slice.ts'
import { timeOfAuditEvent, type AuditCheckpoint } from '../ports/audit-log.ts'
import type { World } from '../ports/world.ts'
import type { AnnounceCheckpoint } from './checkpoint-announcer.ts'
import { isUnchanged, nextCheckpoint } from './checkpoint.ts'
import { firstFlaw } from './chain-flaws.ts'

/**
 * Removes events older than `days`, in every tenant, oldest first, a chunk at a time.
 *
 * The rest begins where the last removed event ended; a checkpoint of that position is in the same commit. Events that do not
 * continue the chain are evidence and stay, with everything after them; that is logged. `announce` gets the last checkpoint of each
 * tenant.
 */
export async function sweepAuditLogs(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  days: number,
  announce?: AnnounceCheckpoint,
): Promise<void> {
  const before = world.clock.now() - days * DAY_MS
  const slice = new TimeSlice(world.clock)
  for (const tenantId of await world.store.auditLog.tenantIds('all')) {
    let checkpoint: AuditCheckpoint | null = null
    try {
      // The events of a deleted tenant are removed elsewhere, without its keys, which are gone.
      if ((await world.store.tenants.find(tenantId)) === null) continue
      for (;;) {
        const swept = await sweepChunk(world, tenantId, before)
        checkpoint = swept?.checkpoint ?? checkpoint
        if (swept === null || !swept.mayBeMore) break
        await slice.yieldIfDue()
      }
    } catch (error) {
      world.log.error('record_not_swept', error, { tenant: tenantId })
    }
    if (checkpoint !== null) await announce?.(tenantId, checkpoint)
  }
}

/** Returns the checkpoint that was written, if any, and whether there may be more to remove; null if there was nothing. */
async function sweepChunk(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  tenantId: string,
  before: number,
): Promise<{ readonly checkpoint: AuditCheckpoint | null; readonly mayBeMore: boolean } | null> {
  const { auditLog } = world.store
  const state = await auditLog.state(tenantId)
  if (state === null) return null
  const rows = await auditLog.rowsAfter(tenantId, state.removed.number, AUDIT_EVENTS_AT_ONCE)
  const young = rows.findIndex((it) => timeOfAuditEvent(it.entry) >= before)
  const old = young < 0 ? rows : rows.slice(0, young)
  const last = old.at(-1)
  if (last === undefined) return null
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
    return { checkpoint, mayBeMore: young < 0 }
  } catch (error) {
    // Another server may have removed some of them, or the tenant been deleted, between two reads.
    if (isUnchanged(state, await auditLog.state(tenantId))) throw error
    return { checkpoint: null, mayBeMore: true }
  }
}

const DAY_MS = 24 * 60 * 60 * 1000
