/**
 * Checkpoints of audit logs: a proof over the hash chain, made with the tenant's keys about once a second.
 *
 * The chain alone would not stop an attacker who can write to the database: they could change an event and recompute every later
 * hash. They cannot do so for events a checkpoint covers. Each checkpoint continues the one before, so that the service never
 * vouches for forged events. Decision 0020.
 */
import { AUDIT_CHECKPOINT_LAG_MS_MAX } from '../base/limits.ts'
import {
  timeOfAuditEvent,
  type ChainPosition,
  type AuditCheckpoint,
  type StoredAuditEvent,
} from '../ports/audit-log.ts'
import type { AuditLogState } from '../ports/store.ts'
import type { World } from '../ports/world.ts'

/**
 * Returns a function that writes a checkpoint of every audit log that has events after its last one.
 *
 * An audit log for which that fails is skipped, and logged once.
 */
export function auditCheckpointer(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
): () => Promise<void> {
  const reported = new Set<string>()
  return async () => {
    for (const tenantId of await world.store.auditLog.tenantIds('beyond-checkpoint')) {
      try {
        await writeCheckpoint(world, tenantId)
        reported.delete(tenantId)
      } catch (error) {
        if (!reported.has(tenantId)) world.log.error('record_unsealed', error, { tenant: tenantId })
        reported.add(tenantId)
      }
    }
  }
}

async function writeCheckpoint(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  tenantId: string,
): Promise<void> {
  // A deleted tenant gets no checkpoint: its keys are gone.
  if ((await world.store.tenants.find(tenantId)) === null) return
  const state = await world.store.auditLog.state(tenantId)
  if (state === null) return
  const checkpoint = await nextCheckpoint(world, tenantId, state, state.removed)
  await world.store.commit(tenantId, [{ kind: 'put-audit-checkpoint', checkpoint }])
}

/**
 * Returns a checkpoint of `state`, with `removed` as the last removed event.
 *
 * Throws if the previous checkpoint is not genuine or the audit log does not continue it.
 */
export async function nextCheckpoint(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  tenantId: string,
  { removed: before, last, checkpoint }: AuditLogState,
  removed: ChainPosition,
): Promise<AuditCheckpoint> {
  const keys = await world.keyring.open(tenantId)
  if (checkpoint === null) {
    const [first] = await world.store.auditLog.rowsAfter(tenantId, 0, 1)
    if (!isBeginning(tenantId, first))
      throw new Error('Cannot checkpoint the audit log: its checkpoint is gone')
  } else {
    if (!keys.attests(statementOf(tenantId, checkpoint), checkpoint.proof)) {
      throw new Error('Cannot checkpoint the audit log: its checkpoint is not ours')
    }
    const { number } = checkpoint.last
    const checkpointed =
      number === before.number
        ? before
        : (await world.store.auditLog.rowsAfter(tenantId, number - 1, 1))[0]
    if (!isSame(before, checkpoint.removed) || !isSame(checkpointed, checkpoint.last)) {
      throw new Error('Cannot checkpoint the audit log: it does not continue its checkpoint')
    }
  }
  const next = { removed, last, at: world.clock.now() }
  return { ...next, proof: keys.attest(statementOf(tenantId, next)) }
}

/** Returns the statement that a checkpoint proves. */
export function statementOf(
  tenantId: string,
  { removed, last, at }: Omit<AuditCheckpoint, 'proof'>,
): string[] {
  return ['record', tenantId, ...textsOf(removed), ...textsOf(last), String(at)]
}

function textsOf({ number, listed, hash }: ChainPosition): string[] {
  return [String(number), String(listed), Buffer.from(hash).toString('hex')]
}

export function isSame(a: ChainPosition | undefined, b: ChainPosition): boolean {
  return (
    a !== undefined &&
    a.number === b.number &&
    a.listed === b.listed &&
    Buffer.compare(a.hash, b.hash) === 0
  )
}

/**
 * Whether the event is the first of a newly created tenant.
 *
 * The time of creation is in the tenant's id, which is part of everything the tenant has sealed and so cannot be replaced: an
 * audit log that was discarded and begun anew does not pass.
 */
export function isBeginning(tenantId: string, first: StoredAuditEvent | undefined): boolean {
  if (first?.number !== 1) return false
  const madeAt = Number.parseInt(tenantId.slice(0, 8) + tenantId.slice(9, 13), 16)
  return Math.abs(timeOfAuditEvent(first.entry) - madeAt) <= AUDIT_CHECKPOINT_LAG_MS_MAX
}
