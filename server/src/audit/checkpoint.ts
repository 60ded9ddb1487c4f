/**
 * Checkpoints of audit logs: a proof over the hash chain, made with the tenant's keys about once a second.
 *
 * The chain alone would not stop an attacker who can write to the database: they could change an event and recompute every later
 * hash. They cannot do so for events a checkpoint covers. The first checkpoint is in the commit that creates the tenant, and each
 * later one continues the one before, so that the service never vouches for an audit log that was replaced. It also seals the
 * tenant's access state. Decisions 0020, 0081, 0082.
 */
import { accessChangesIn } from '../ports/access-state.ts'
import {
  checkpointStatement,
  decodeAuditEventSummary,
  isSamePosition,
  type AuditCheckpoint,
  type ChainPosition,
  type StoredAuditEvent,
} from '../ports/audit-log.ts'
import { flawOfAccessState, flawOfRevision } from '../access/access-state-flaw.ts'
import type { AuditLogState } from '../ports/store.ts'
import { isStoreOutage, rejectAsOutage } from '../ports/store-outage.ts'
import type { World } from '../ports/world.ts'
import { flawOfCheckpoint, type Flaw } from './chain-flaws.ts'
import type { AnnounceCheckpoint } from './checkpoint-announcer.ts'
import { CoveredEnds } from './covered-ends.ts'
import { flawSinceCheckpoint } from './verification.ts'

/**
 * Returns a function that writes a checkpoint of every audit log that has events after its last one.
 *
 * An audit log that cannot be continued is skipped, and logged once as `record_unsealed`: it may have been tampered with. If the
 * store does not answer, that is `audit_checkpoint_failed`, logged once until a round has none, whatever the tenant. `announce` gets
 * each checkpoint once it is committed.
 */
export function auditCheckpointer(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  announce?: AnnounceCheckpoint,
): () => Promise<void> {
  const reported = new Set<string>()
  /** Whether the store did not answer for some audit log in the round before. */
  let failing = false
  const ends = new CoveredEnds()
  return async () => {
    let outage = false
    for (const tenantId of await world.store.auditLog.tenantIds('beyond-checkpoint')) {
      try {
        const flaw = await ends.flawOf(world.store.auditLog, tenantId)
        if (flaw !== null) throw unsealable(flaw)
        const checkpoint = await writeCheckpoint(world, tenantId)
        if (checkpoint !== null) {
          ends.remember(tenantId, checkpoint.last)
          await announce?.(tenantId, checkpoint)
        }
        reported.delete(tenantId)
      } catch (error) {
        const fields = { tenant: tenantId }
        if (isStoreOutage(error)) {
          if (!failing && !outage) world.log.error('audit_checkpoint_failed', error, fields)
          outage = true
        } else {
          if (!reported.has(tenantId)) world.log.error('record_unsealed', error, fields)
          reported.add(tenantId)
        }
      }
    }
    failing = outage
  }
}

export interface CheckpointOptions {
  /** Set if the previous checkpoint may be one of a version without access states. */
  readonly upgrading?: boolean
}

/** Writes a checkpoint of everything that the tenant's audit log holds, and returns it. Rejects as nextCheckpoint() does. */
export async function writeCheckpoint(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  tenantId: string,
  options: CheckpointOptions = {},
): Promise<AuditCheckpoint | null> {
  // A deleted tenant gets no checkpoint: its keys are gone.
  if ((await world.store.tenants.find(tenantId)) === null) return null
  const state = await world.store.auditLog.state(tenantId)
  if (state === null) return null
  try {
    const checkpoint = await nextCheckpoint(world, tenantId, state, state.removed, options)
    const change = { kind: 'put-audit-checkpoint', checkpoint } as const
    await world.store.commit(tenantId, [change]).catch(rejectAsOutage)
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
 * flawSinceCheckpoint() says, or if its access state is not genuine or older than the one in that checkpoint.
 */
export async function nextCheckpoint(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  tenantId: string,
  state: AuditLogState,
  removed: ChainPosition,
  { upgrading = false }: CheckpointOptions = {},
): Promise<AuditCheckpoint> {
  const keys = await world.keyring.open(tenantId)
  let changes = 0
  const onEvents = (rows: readonly StoredAuditEvent[]): void => {
    changes += accessChangesIn(rows.map((it) => decodeAuditEventSummary(it.entry)))
  }
  const flaw =
    flawOfCheckpoint(keys, tenantId, state, 'required') ??
    (await flawSinceCheckpoint(world, tenantId, state, { onEvents }))
  if (flaw !== null) throw unsealable(flaw)
  const isFirst = upgrading && state.checkpoint?.access === null
  const ofAccess =
    flawOfAccessState(keys, tenantId, isFirst ? { ...state, checkpoint: null } : state) ??
    flawOfRevision(state, changes)
  if (ofAccess !== null) {
    throw new Error(`Cannot checkpoint the audit log: the access state ${ofAccess}`)
  }
  const { revision, digest } = state.access!
  const access = { revision, digest }
  return checkpointOf(keys, tenantId, { removed, last: state.last, at: world.clock.now(), access })
}

/** Returns a checkpoint of that, whatever it is. */
export function checkpointOf(
  keys: { readonly attest: (statement: readonly string[]) => Uint8Array },
  tenantId: string,
  covered: Omit<AuditCheckpoint, 'proof'>,
): AuditCheckpoint {
  return { ...covered, proof: keys.attest(checkpointStatement(tenantId, covered)) }
}

export function unsealable({ number, what }: Flaw): Error {
  return new Error(`Cannot checkpoint the audit log: event ${number} ${what}`)
}

/** Whether the audit log begins where it did. */
export function isUnchanged(before: AuditLogState, now: AuditLogState | null): boolean {
  return now !== null && isSamePosition(now.removed, before.removed)
}
