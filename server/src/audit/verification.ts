/** Verification: finds out whether a tenant's audit log is intact, and if not, from which event on. */
import { AUDIT_EVENTS_AT_ONCE } from '../base/limits.ts'
import { TimeSlice } from '../base/time-slice.ts'
import {
  isSamePosition,
  timeOfAuditEvent,
  type AuditCheckpoint,
  type ChainPosition,
  type StoredAuditEvent,
} from '../ports/audit-log.ts'
import type { AuditLogReader, AuditLogState } from '../ports/store.ts'
import type { World } from '../ports/world.ts'
import {
  firstFlaw,
  flawOfCheckpoint,
  flawOfEnd,
  isBeginning,
  isGenuine,
  rewritten,
  Tail,
  type CheckpointRule,
  type Flaw,
} from './chain-flaws.ts'

export interface AuditVerdict {
  readonly tenantId: string
  /** Range of event numbers that were read, both inclusive; 0 for none. */
  readonly first: number
  readonly last: number
  /** Number of events that were checked. */
  readonly events: number
  /** Times of the earliest and the latest of them; null for none. */
  readonly from: number | null
  readonly to: number | null
  /** In hex, of the last event read: stored elsewhere, it proves later that nothing was cut off. */
  readonly hash: string
  /** Number of the last event that a checkpoint covers. */
  readonly sealed: number
  /** Time of that checkpoint; null if there is none, or it is not genuine. */
  readonly sealedAt: number | null
  /** Null for an audit log that is intact. */
  readonly flaw: Flaw | null
  readonly uncovered: readonly UncoveredEvents[]
}

/** Events for which a verdict does not vouch. */
export interface UncoveredEvents {
  readonly first: number
  readonly last: number
  readonly why: 'removed' | 'after the checkpoint' | 'after the flaw'
}

/** A point in the verification of one audit log, at which another run can continue. */
export interface AuditPoint extends Pick<
  AuditVerdict,
  'tenantId' | 'first' | 'events' | 'from' | 'to'
> {
  /** The last event checked. */
  readonly position: ChainPosition
}

export interface VerifyAuditOptions {
  readonly checkpoint?: CheckpointRule
  /** A point that another run reached. Ignored if the audit log no longer contains it. */
  readonly resume?: AuditPoint | null
  /** Called after each chunk of events that a checkpoint covers. */
  readonly onPoint?: (point: AuditPoint) => Promise<void>
}

type VerifyWorld = Pick<World, 'clock' | 'keyring'> & {
  readonly store: Pick<World['store'], 'auditLog'>
}

/** Reads the whole audit log of one tenant and checks each event against the one before, then the checkpoint. */
export async function verifyAuditLog(
  world: VerifyWorld,
  tenantId: string,
  { checkpoint: rule = 'required', resume = null, onPoint }: VerifyAuditOptions = {},
): Promise<AuditVerdict> {
  const { auditLog } = world.store
  const state = await auditLog.state(tenantId)
  if (state === null) return missing(tenantId)
  const { checkpoint, removed } = state
  const keys = await world.keyring.open(tenantId)
  const tail = new Tail(checkpoint, world.clock.now())
  const slice = new TimeSlice(world.clock)
  const usable = resume !== null && (await isIn(world, tenantId, state, resume))
  let point: AuditPoint = usable ? resume : beginningOf(tenantId, removed)
  const ofCheckpoint = flawOfCheckpoint(keys, tenantId, state, rule)
  // Without a checkpoint nothing is vouched for, but a broken chain says more.
  let flaw = checkpoint === null && removed.number === 0 ? null : ofCheckpoint
  for (;;) {
    if (flaw !== null) break
    const { position } = point
    const rows = await rowsFollowing(auditLog, tenantId, { position, removed })
    if (rows.length === 0) break
    flaw = firstFlaw(position, rows) ?? tail.flawOf(rows)
    const older = checkpoint === null && rule === 'left to the service'
    if (flaw === null && older && position.number === 0 && !isBeginning(tenantId, rows[0])) {
      flaw = { number: 1, what: 'is not the first of this tenant, and there is no checkpoint' }
    }
    point = pointAfter(
      point,
      rows.filter((it) => flaw === null || it.number < flaw.number),
    )
    if (onPoint !== undefined && point.position.number < (checkpoint?.last.number ?? 0)) {
      await onPoint(point)
    }
    await slice.yieldIfDue()
  }
  flaw ??= flawOfEnd(state.last, point.position)
  flaw ??= tail.flawOfEnd(point.position)
  flaw ??= ofCheckpoint
  flaw ??= await flawOfBeginning(auditLog, tenantId, removed)
  const proven = checkpoint !== null && isGenuine(keys, tenantId, checkpoint) ? checkpoint : null
  return verdictOf(point, state, proven, flaw)
}

/**
 * Returns the events after `position`. Reads its own event once more: a row may hold several events, so that others of the same
 * numbers may have been put into a later row.
 */
async function rowsFollowing(
  auditLog: AuditLogReader,
  tenantId: string,
  { position: { number }, removed }: { position: ChainPosition; removed: ChainPosition },
): Promise<StoredAuditEvent[]> {
  const again = number === removed.number ? 0 : 1
  const rows = await auditLog.rowsAfter(tenantId, number - again, AUDIT_EVENTS_AT_ONCE + again)
  return rows.slice(again)
}

/** Lists of events may begin with those that were put in before the beginning, and no chain leads there. */
async function flawOfBeginning(
  auditLog: AuditLogReader,
  tenantId: string,
  removed: ChainPosition,
): Promise<Flaw | null> {
  const [row] = await auditLog.rowsBefore(tenantId, removed.number + 1, 1)
  if (row === undefined) return null
  return { number: row.number, what: 'is before the beginning of the audit log: it was put in' }
}

function missing(tenantId: string): AuditVerdict {
  return {
    tenantId,
    first: 0,
    last: 0,
    events: 0,
    from: null,
    to: null,
    hash: '',
    sealed: 0,
    sealedAt: null,
    flaw: { number: 1, what: 'is missing: the audit log has no beginning' },
    uncovered: [],
  }
}

function beginningOf(tenantId: string, position: ChainPosition): AuditPoint {
  return { tenantId, first: 0, events: 0, from: null, to: null, position }
}

function pointAfter(point: AuditPoint, rows: readonly StoredAuditEvent[]): AuditPoint {
  const [first, last] = [rows[0], rows.at(-1)]
  if (first === undefined || last === undefined) return point
  const times = rows.map((it) => timeOfAuditEvent(it.entry))
  const { number, listed, hash } = last
  return {
    tenantId: point.tenantId,
    first: point.first === 0 ? first.number : point.first,
    events: point.events + rows.length,
    from: Math.min(point.from ?? Infinity, ...times),
    to: Math.max(point.to ?? -Infinity, ...times),
    position: { number, listed, hash },
  }
}

function verdictOf(
  { position, ...checked }: AuditPoint,
  { removed, last }: AuditLogState,
  proven: AuditCheckpoint | null,
  flaw: Flaw | null,
): AuditVerdict {
  const sealed = proven?.last.number ?? 0
  const uncovered: UncoveredEvents[] = []
  if (removed.number > 0) uncovered.push({ first: 1, last: removed.number, why: 'removed' })
  if (flaw !== null && flaw.number > removed.number && flaw.number <= last.number) {
    uncovered.push({ first: flaw.number, last: last.number, why: 'after the flaw' })
  } else if (position.number > sealed) {
    const first = Math.max(sealed, removed.number) + 1
    uncovered.push({ first, last: position.number, why: 'after the checkpoint' })
  }
  return {
    ...checked,
    last: position.number,
    hash: Buffer.from(position.hash).toString('hex'),
    sealed,
    sealedAt: proven?.at ?? null,
    flaw,
    uncovered,
  }
}

/** Whether the point is one of the audit log, and before the end of its checkpoint. */
async function isIn(
  { store }: VerifyWorld,
  tenantId: string,
  { removed, checkpoint }: AuditLogState,
  { tenantId: of, position }: AuditPoint,
): Promise<boolean> {
  const { number } = position
  if (of !== tenantId || checkpoint === null) return false
  if (number <= removed.number || number >= checkpoint.last.number) return false
  const [row] = await store.auditLog.rowsAfter(tenantId, number - 1, 1)
  return isSamePosition(row, position)
}

/**
 * Checks the end of one tenant's audit log: the checkpoint, the event it ends with, and up to AUDIT_EVENTS_AT_ONCE later events.
 * Returns the flaw, or null. Does not read earlier events.
 */
export async function flawOfNewest(
  world: VerifyWorld,
  tenantId: string,
  rule: CheckpointRule = 'required',
): Promise<Flaw | null> {
  const state = await world.store.auditLog.state(tenantId)
  if (state === null) return { number: 1, what: 'is missing: the audit log has no beginning' }
  const keys = await world.keyring.open(tenantId)
  return (
    flawOfCheckpoint(keys, tenantId, state, rule) ??
    (await flawSinceCheckpoint(world, tenantId, state, { limit: AUDIT_EVENTS_AT_ONCE }))
  )
}

interface SinceCheckpointOptions {
  readonly limit?: number
  /** Whether to report events that should have been in a checkpoint long ago, too. */
  readonly late?: boolean
  /** Called with each chunk of later events, once it is checked. */
  readonly onEvents?: (rows: readonly StoredAuditEvent[]) => void
}

/**
 * Checks the event that the checkpoint ends with and up to `limit` later ones: each must continue the chain, and none may be older
 * than the checkpoint by more than a transaction may last. Returns the flaw, or null.
 */
export async function flawSinceCheckpoint(
  { clock, store }: Pick<VerifyWorld, 'clock' | 'store'>,
  tenantId: string,
  { checkpoint, removed, last }: AuditLogState,
  { limit = Infinity, late = false, onEvents }: SinceCheckpointOptions = {},
): Promise<Flaw | null> {
  const tail = new Tail(checkpoint, clock.now())
  const slice = new TimeSlice(clock)
  let position = checkpoint?.last ?? removed
  if (checkpoint !== null) {
    const flaw = await flawOfCovered(store, tenantId, { position, removed })
    if (flaw !== null) return flaw
  }
  const end = Math.min(last.number, position.number + limit)
  while (position.number < end) {
    const count = Math.min(end - position.number, AUDIT_EVENTS_AT_ONCE)
    const rows = await store.auditLog.rowsAfter(tenantId, position.number, count)
    if (rows.length === 0) break
    const flaw = firstFlaw(position, rows) ?? (late ? tail.flawOf(rows) : tail.flawOfAge(rows))
    if (flaw !== null) return flaw
    onEvents?.(rows)
    position = rows.at(-1)!
    await slice.yieldIfDue()
  }
  return position.number === end && end < last.number ? null : flawOfEnd(last, position)
}

/** Checks the event that a checkpoint ends with, by its content too: it must continue the chain. Returns the flaw, or null. */
async function flawOfCovered(
  { auditLog }: VerifyWorld['store'],
  tenantId: string,
  { position, removed }: { readonly position: ChainPosition; readonly removed: ChainPosition },
): Promise<Flaw | null> {
  const { number } = position
  if (number === removed.number) {
    return isSamePosition(removed, position) ? null : rewritten(number)
  }
  const isFirst = number === removed.number + 1
  const rows = await auditLog.rowsAfter(tenantId, number - (isFirst ? 1 : 2), isFirst ? 1 : 2)
  const covered = rows.at(-1)
  if (!isSamePosition(covered, position)) return rewritten(number)
  return firstFlaw(isFirst ? removed : rows[0]!, [covered!])
}
