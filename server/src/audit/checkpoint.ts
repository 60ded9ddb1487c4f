/**
 * Checkpoints of audit logs: a proof over the hash chain, made with the tenant's keys about once a second.
 *
 * The chain alone would not stop an attacker who can write to the database: they could change an event and recompute every later
 * hash. They cannot do so for events a checkpoint covers. The first checkpoint is in the commit that creates the tenant, and each
 * later one continues the one before, so that the service never vouches for an audit log that was replaced. Decisions 0020, 0081.
 */
import {
  checkpointStatement,
  isSamePosition,
  type AuditCheckpoint,
  type ChainPosition,
} from '../ports/audit-log.ts'
import type { AuditLogState } from '../ports/store.ts'
import type { World } from '../ports/world.ts'
import { flawOfCheckpoint, type Flaw } from './chain-flaws.ts'
import { CoveredEnds } from './covered-ends.ts'
import { flawSinceCheckpoint } from './verification.ts'

/**
 * Returns a function that writes a checkpoint of every audit log that has events after its last one.
 *
 * An audit log for which that fails is skipped, and logged once.
 */
export function auditCheckpointer(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
): () => Promise<void> {
  const reported = new Set<string>()
  const ends = new CoveredEnds()
  return async () => {
    for (const tenantId of await world.store.auditLog.tenantIds('beyond-checkpoint')) {
      try {
        const flaw = await ends.flawOf(world.store.auditLog, tenantId)
        if (flaw !== null) throw unsealable(flaw)
        const checkpoint = await writeCheckpoint(world, tenantId)
        if (checkpoint !== null) ends.remember(tenantId, checkpoint.last)
        reported.delete(tenantId)
      } catch (error) {
        if (!reported.has(tenantId)) world.log.error('record_unsealed', error, { tenant: tenantId })
        reported.add(tenantId)
      }
    }
  }
}

/** Writes a checkpoint of everything that the tenant's audit log holds, and returns it. Rejects as nextCheckpoint() does. */
export async function writeCheckpoint(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  tenantId: string,
): Promise<AuditCheckpoint | null> {
  // A deleted tenant gets no checkpoint: its keys are gone.
  if ((await world.store.tenants.find(tenantId)) === null) return null
  const state = await world.store.auditLog.state(tenantId)
  if (state === null) return null
  try {
    const checkpoint = await nextCheckpoint(world, tenantId, state, state.removed)
    await world.store.commit(tenantId, [{ kind: 'put-audit-checkpoint', checkpoint }])
    return checkpoint
  } catch (error) {
    // Old events may have been removed, or the tenant deleted, between two reads: the next attempt follows.
    if (isUnchanged(state, await world.store.auditLog.state(tenantId))) throw error
    return null
  }
}

/**
 * Returns a checkpoint of `state`, with `removed` as the last removed event.
 *
 * Throws if the previous checkpoint is missing or not genuine, or if the audit log does not continue it event by event, as
 * flawSinceCheckpoint() says.
 */
export async function nextCheckpoint(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  tenantId: string,
  state: AuditLogState,
  removed: ChainPosition,
): Promise<AuditCheckpoint> {
  const keys = await world.keyring.open(tenantId)
  const flaw =
    flawOfCheckpoint(keys, tenantId, state, 'required') ??
    (await flawSinceCheckpoint(world, tenantId, state))
  if (flaw !== null) throw unsealable(flaw)
  return checkpointOf(keys, tenantId, { removed, last: state.last, at: world.clock.now() })
}

/** Returns a checkpoint of that, whatever it is. */
export function checkpointOf(
  keys: { readonly attest: (statement: readonly string[]) => Uint8Array },
  tenantId: string,
  covered: Omit<AuditCheckpoint, 'proof'>,
): AuditCheckpoint {
  return { ...covered, proof: keys.attest(checkpointStatement(tenantId, covered)) }
}

function unsealable({ number, what }: Flaw): Error {
  return new Error(`Cannot checkpoint the audit log: event ${number} ${what}`)
}

/** Whether the audit log begins where it did. */
export function isUnchanged(before: AuditLogState, now: AuditLogState | null): boolean {
  return now !== null && isSamePosition(now.removed, before.removed)
}
