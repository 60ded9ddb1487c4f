/** Verification: finds out whether a tenant's audit log is intact, and if not, from which event on. */
import {
  AUDIT_CHECKPOINT_LAG_MS_MAX,
  AUDIT_EVENTS_AT_ONCE,
  TRANSACTION_LIFETIME_MS_MAX,
} from '../base/limits.ts'
import {
  chainHash,
  checkpointStatement,
  decodeAuditEventSummary,
  isSamePosition,
  timeOfAuditEvent,
  type AuditCheckpoint,
  type ChainPosition,
  type StoredAuditEvent,
} from '../ports/audit-log.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { AuditLogState } from '../ports/store.ts'
import type { World } from '../ports/world.ts'

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

export interface Flaw {
  /** Number of the first wrong event. */
  readonly number: number
  /** Completes "event 7 ...". */
  readonly what: string
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

/**
 * Whether an audit log must have a checkpoint. It is `left to the service` in stores of older versions: then the first minute of a
 * tenant may be without one. precedesCheckpoints() knows which rule applies.
 */
export type CheckpointRule = 'required' | 'left to the service'

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
  const usable = resume !== null && (await isIn(world, tenantId, state, resume))
  let point: AuditPoint = usable ? resume : beginningOf(tenantId, removed)
  const ofCheckpoint = flawOfCheckpoint(keys, tenantId, state, rule)
  // Without a checkpoint nothing is vouched for, but a broken chain says more.
  let flaw = checkpoint === null ? null : ofCheckpoint
  for (;;) {
    if (flaw !== null) break
    const { position } = point
    const rows = await auditLog.rowsAfter(tenantId, position.number, AUDIT_EVENTS_AT_ONCE)
    if (rows.length === 0) break
    flaw = firstFlaw(position, rows) ?? tail.flawOf(rows)
    const older = checkpoint === null && rule === 'left to the service'
    if (older && position.number === 0 && !isBeginning(tenantId, rows[0])) {
      flaw ??= { number: 1, what: 'is not the first of this tenant, and there is no checkpoint' }
    }
    point = pointAfter(
      point,
      rows.filter((it) => flaw === null || it.number < flaw.number),
    )
    if (onPoint !== undefined && point.position.number < (checkpoint?.last.number ?? 0)) {
      await onPoint(point)
    }
    await world.clock.yield()
  }
  flaw ??= flawOfEnd(state.last, point.position)
  flaw ??= tail.flawOfEnd(point.position)
  flaw ??= ofCheckpoint
  const proven = checkpoint !== null && isGenuine(keys, tenantId, checkpoint) ? checkpoint : null
  return verdictOf(point, state, proven, flaw)
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
  if (flaw !== null && last.number >= flaw.number) {
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
    (await flawSinceCheckpoint(world, tenantId, state, AUDIT_EVENTS_AT_ONCE))
  )
}

/**
 * Checks the event that the checkpoint ends with and up to `limit` later ones: each must continue the chain, and none may be older
 * than the checkpoint by more than a transaction may last. Returns the flaw, or null.
 */
export async function flawSinceCheckpoint(
  { clock, store }: Pick<VerifyWorld, 'clock' | 'store'>,
  tenantId: string,
  { checkpoint, removed, last }: AuditLogState,
  limit = Infinity,
): Promise<Flaw | null> {
  const tail = new Tail(checkpoint, clock.now())
  let position = checkpoint?.last ?? removed
  if (checkpoint !== null) {
    const [covered] =
      position.number === removed.number
        ? [removed]
        : await store.auditLog.rowsAfter(tenantId, position.number - 1, 1)
    if (!isSamePosition(covered, position)) return rewritten(position.number)
  }
  const end = Math.min(last.number, position.number + limit)
  while (position.number < end) {
    const count = Math.min(end - position.number, AUDIT_EVENTS_AT_ONCE)
    const rows = await store.auditLog.rowsAfter(tenantId, position.number, count)
    if (rows.length === 0) break
    const flaw = firstFlaw(position, rows) ?? tail.flawOfAge(rows)
    if (flaw !== null) return flaw
    position = rows.at(-1)!
    await clock.yield()
  }
  return position.number === end && end < last.number ? null : flawOfEnd(last, position)
}

/** Returns the first of `rows`, the events after `position`, that does not continue the chain. */
export function firstFlaw(position: ChainPosition, rows: readonly StoredAuditEvent[]): Flaw | null {
  let before = position
  for (const row of rows) {
    const expected = before.number + 1
    if (row.number !== expected) return { number: expected, what: 'is missing' }
    const number = expected
    const items = itemCountOfRow(row)
    if (items === null) return { number, what: 'was changed: it cannot be read' }
    if (row.listed !== before.listed + items)
      return { number, what: 'was changed: its count is off' }
    const hash = chainHash(before.hash, row, row.entry)
    if (!hash.equals(row.hash)) {
      return { number, what: 'was changed, or does not follow from the one before' }
    }
    before = row
  }
  return null
}

/** Returns the number of items the row counts as; null if it is unreadable. */
function itemCountOfRow({ entry }: StoredAuditEvent): number | null {
  try {
    return decodeAuditEventSummary(entry).items
  } catch {
    return null
  }
}

/** Checks the checkpoint by itself, and against the beginning and the end of the audit log. */
export function flawOfCheckpoint(
  keys: Pick<TenantKeys, 'attests'>,
  tenantId: string,
  { checkpoint, removed, last }: AuditLogState,
  rule: CheckpointRule,
): Flaw | null {
  if (checkpoint === null) {
    // The set-up of a tenant is in its audit log, so none is empty.
    if (last.number === 0) return { number: 1, what: 'is missing: the audit log is empty' }
    if (removed.number === 0 && rule === 'left to the service') return null
    return { number: removed.number + 1, what: 'cannot be vouched for: the checkpoint is gone' }
  }
  if (!isGenuine(keys, tenantId, checkpoint)) {
    return {
      number: removed.number + 1,
      what: 'cannot be vouched for: the checkpoint is not genuine',
    }
  }
  if (!isSamePosition(removed, checkpoint.removed)) {
    const number = Math.min(removed.number, checkpoint.removed.number) + 1
    return { number, what: 'is not where the audit log begins in its checkpoint' }
  }
  // Events that the checkpoint covers are missing at the end; the events themselves are checked one by one.
  return last.number < checkpoint.last.number ? flawOfEnd(checkpoint.last, last) : null
}

function isGenuine(
  keys: Pick<TenantKeys, 'attests'>,
  tenantId: string,
  checkpoint: AuditCheckpoint,
): boolean {
  return keys.attests(checkpointStatement(tenantId, checkpoint), checkpoint.proof)
}

/**
 * Whether the event is the first of a newly created tenant.
 *
 * The time of creation is in the tenant's id, which is part of everything the tenant has sealed and so cannot be replaced: an
 * audit log that was discarded and begun anew does not pass.
 */
function isBeginning(tenantId: string, first: StoredAuditEvent | undefined): boolean {
  if (first?.number !== 1) return false
  const madeAt = Number.parseInt(tenantId.slice(0, 8) + tenantId.slice(9, 13), 16)
  return Math.abs(timeOfAuditEvent(first.entry) - madeAt) <= AUDIT_CHECKPOINT_LAG_MS_MAX
}

function rewritten(number: number): Flaw {
  return { number, what: 'is not the one in the checkpoint: it or one before was rewritten' }
}

/** Compares the expected end of the audit log with the actual one. */
function flawOfEnd(expected: ChainPosition, actual: ChainPosition): Flaw | null {
  if (actual.number < expected.number) return { number: actual.number + 1, what: 'is missing' }
  if (actual.number > expected.number) {
    return { number: expected.number + 1, what: 'is more than there should be' }
  }
  if (isSamePosition(actual, expected)) return null
  return { number: actual.number, what: 'is not what the audit log should end with' }
}

/** Checks the events at the checkpoint and after it. */
class Tail {
  readonly #checkpoint: AuditCheckpoint | null
  /** The time before which no event after the checkpoint may lie. */
  readonly #earliest: number
  /** The latest time so far. */
  #latest: number | null = null
  /** The sum of all steps forward in time, and the longest of them. */
  #passed = 0
  #longest = 0

  /** `now` is the present time: if the clock was set back since the checkpoint, events may be as much older. */
  constructor(checkpoint: AuditCheckpoint | null, now: number) {
    this.#checkpoint = checkpoint
    this.#earliest =
      Math.min(checkpoint?.at ?? -Infinity, now) -
      TRANSACTION_LIFETIME_MS_MAX -
      AUDIT_CHECKPOINT_LAG_MS_MAX
  }

  flawOf(rows: readonly StoredAuditEvent[]): Flaw | null {
    const covered = this.#checkpoint?.last.number ?? 0
    for (const row of rows) {
      if (row.number === covered && !isSamePosition(row, this.#checkpoint!.last)) {
        return rewritten(covered)
      }
    }
    return this.flawOfAge(rows) ?? this.#flawOfDelay(rows)
  }

  flawOfAge(rows: readonly StoredAuditEvent[]): Flaw | null {
    const covered = this.#checkpoint?.last.number ?? 0
    for (const { number, entry } of rows) {
      if (number <= covered || timeOfAuditEvent(entry) >= this.#earliest) continue
      const what =
        'is older than the checkpoint before it by more than a transaction may last: it was put in, or the clock was set back'
      return { number, what }
    }
    return null
  }

  /** Within a second of the first event comes a checkpoint. A single step of any length may be the clock's. */
  #flawOfDelay(rows: readonly StoredAuditEvent[]): Flaw | null {
    const covered = this.#checkpoint?.last.number ?? 0
    for (const { number, entry } of rows) {
      if (number <= covered) continue
      const at = timeOfAuditEvent(entry)
      const step = Math.max(0, at - (this.#latest ?? at))
      this.#latest = Math.max(at, this.#latest ?? at)
      this.#passed += step
      this.#longest = Math.max(this.#longest, step)
      if (this.#passed - this.#longest <= AUDIT_CHECKPOINT_LAG_MS_MAX) continue
      return { number, what: 'should have been in a checkpoint long ago' }
    }
    return null
  }

  flawOfEnd(position: ChainPosition): Flaw | null {
    if (this.#checkpoint === null || position.number >= this.#checkpoint.last.number) return null
    return { number: position.number + 1, what: 'is missing, and a checkpoint covers it' }
  }
}
