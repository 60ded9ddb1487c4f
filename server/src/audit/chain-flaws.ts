/** Checks of parts of an audit log: its checkpoint, a stretch of its chain, its end. */
import { AUDIT_CHECKPOINT_LAG_MS_MAX, TRANSACTION_LIFETIME_MS_MAX } from '../base/limits.ts'
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

export interface Flaw {
  /** Number of the first wrong event. */
  readonly number: number
  /** Completes "event 7 ...". */
  readonly what: string
}

/**
 * Whether an audit log must have a checkpoint. It is `left to the service` in stores of older versions: then the first minute of a
 * tenant may be without one. precedesCheckpoints() knows which rule applies.
 */
export type CheckpointRule = 'required' | 'left to the service'

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

export function isGenuine(
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
export function isBeginning(tenantId: string, first: StoredAuditEvent | undefined): boolean {
  if (first?.number !== 1) return false
  const madeAt = Number.parseInt(tenantId.slice(0, 8) + tenantId.slice(9, 13), 16)
  return Math.abs(timeOfAuditEvent(first.entry) - madeAt) <= AUDIT_CHECKPOINT_LAG_MS_MAX
}

export function rewritten(number: number): Flaw {
  return { number, what: 'is not the one in the checkpoint: it or one before was rewritten' }
}

/** Compares the expected end of the audit log with the actual one. */
export function flawOfEnd(expected: ChainPosition, actual: ChainPosition): Flaw | null {
  if (actual.number < expected.number) return { number: actual.number + 1, what: 'is missing' }
  if (actual.number > expected.number) {
    return { number: expected.number + 1, what: 'is more than there should be' }
  }
  if (isSamePosition(actual, expected)) return null
  return { number: actual.number, what: 'is not what the audit log should end with' }
}

/** Checks the events at the checkpoint and after it. */
export class Tail {
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

  /**
   * Within a second of the first event comes a checkpoint. A single step of any length may be the clock's, but not in an audit log
   * without a checkpoint: all of it is the first minute of its tenant.
   */
  #flawOfDelay(rows: readonly StoredAuditEvent[]): Flaw | null {
    const covered = this.#checkpoint?.last.number ?? 0
    for (const { number, entry } of rows) {
      if (number <= covered) continue
      const at = timeOfAuditEvent(entry)
      const step = Math.max(0, at - (this.#latest ?? at))
      this.#latest = Math.max(at, this.#latest ?? at)
      this.#passed += step
      this.#longest = Math.max(this.#longest, step)
      const excused = this.#checkpoint === null ? 0 : this.#longest
      if (this.#passed - excused <= AUDIT_CHECKPOINT_LAG_MS_MAX) continue
      return { number, what: 'should have been in a checkpoint long ago' }
    }
    return null
  }

  flawOfEnd(position: ChainPosition): Flaw | null {
    if (this.#checkpoint === null || position.number >= this.#checkpoint.last.number) return null
    return { number: position.number + 1, what: 'is missing, and a checkpoint covers it' }
  }
}
