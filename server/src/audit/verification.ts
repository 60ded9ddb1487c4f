/** Verification: finds out whether a tenant's audit log is intact, and if not, from which event on. */
import { AUDIT_EVENTS_AT_ONCE, AUDIT_CHECKPOINT_LAG_MS_MAX } from '../base/limits.ts'
import {
  chainHash,
  decodeAuditEventSummary,
  timeOfAuditEvent,
  type ChainPosition,
  type AuditCheckpoint,
  type StoredAuditEvent,
} from '../ports/audit-log.ts'
import type { AuditLogState } from '../ports/store.ts'
import type { World } from '../ports/world.ts'
import { isBeginning, isSame, statementOf } from './checkpoint.ts'

export interface AuditVerdict {
  readonly tenantId: string
  /** Range of event numbers that were read, both inclusive; 0 for none. */
  readonly first: number
  readonly last: number
  /** In hex, of the last event read: stored elsewhere, it proves later that nothing was cut off. */
  readonly hash: string
  /** Number of the last event that a checkpoint covers. */
  readonly sealed: number
  /** Null for an audit log that is intact. */
  readonly flaw: Flaw | null
}

export interface Flaw {
  /** Number of the first wrong event. */
  readonly number: number
  /** Completes "event 7 ...". */
  readonly what: string
}

/** Reads the whole audit log of one tenant and checks each event against the one before, then the checkpoint. */
export async function verifyAuditLog(
  world: Pick<World, 'clock' | 'keyring'> & { readonly store: Pick<World['store'], 'auditLog'> },
  tenantId: string,
): Promise<AuditVerdict> {
  const { auditLog } = world.store
  const state = await auditLog.state(tenantId)
  if (state === null) {
    const flaw = { number: 1, what: 'is missing: the audit log has no beginning' }
    return { tenantId, first: 0, last: 0, hash: '', sealed: 0, flaw }
  }
  const keys = await world.keyring.open(tenantId)
  const genuine =
    state.checkpoint !== null &&
    keys.attests(statementOf(tenantId, state.checkpoint), state.checkpoint.proof)
  const tail = new Tail(state.checkpoint)
  let position: ChainPosition = state.removed
  let flaw: Flaw | null = flawOfCheckpoint(state, genuine)
  for (;;) {
    if (flaw !== null) break
    const rows = await auditLog.rowsAfter(tenantId, position.number, AUDIT_EVENTS_AT_ONCE)
    if (rows.length === 0) break
    flaw = firstFlaw(position, rows) ?? tail.flawOf(rows)
    if (state.checkpoint === null && position.number === 0 && !isBeginning(tenantId, rows[0])) {
      flaw ??= { number: 1, what: 'is not the first of this tenant, and there is no checkpoint' }
    }
    const good = rows.filter((it) => flaw === null || it.number < flaw.number)
    position = good.at(-1) ?? position
    await world.clock.yield()
  }
  flaw ??= flawOfEnd(state.last, position)
  flaw ??= tail.flawOfEnd(position)
  return {
    tenantId,
    first: position.number > state.removed.number ? state.removed.number + 1 : 0,
    last: position.number,
    hash: Buffer.from(position.hash).toString('hex'),
    sealed: genuine ? state.checkpoint.last.number : 0,
    flaw,
  }
}

/**
 * Checks the end of one tenant's audit log: the checkpoint, the event it ends with, and up to AUDIT_EVENTS_AT_ONCE later events.
 * Returns the flaw, or null. Does not read earlier events.
 */
export async function flawOfNewest(
  world: Pick<World, 'keyring'> & { readonly store: Pick<World['store'], 'auditLog'> },
  tenantId: string,
): Promise<Flaw | null> {
  const { auditLog } = world.store
  const state = await auditLog.state(tenantId)
  if (state === null) return { number: 1, what: 'is missing: the audit log has no beginning' }
  const { checkpoint, removed } = state
  const keys = await world.keyring.open(tenantId)
  const genuine =
    checkpoint !== null && keys.attests(statementOf(tenantId, checkpoint), checkpoint.proof)
  const flaw = flawOfCheckpoint(state, genuine)
  if (flaw !== null) return flaw
  const covered = checkpoint?.last ?? removed
  if (checkpoint !== null && covered.number > removed.number) {
    const [last] = await auditLog.rowsAfter(tenantId, covered.number - 1, 1)
    const rewritten = new Tail(checkpoint).flawOf(last === undefined ? [] : [last])
    if (rewritten !== null) return rewritten
  }
  const rows = await auditLog.rowsAfter(tenantId, covered.number, AUDIT_EVENTS_AT_ONCE)
  const broken = firstFlaw(covered, rows)
  if (broken !== null || rows.length === AUDIT_EVENTS_AT_ONCE) return broken
  return flawOfEnd(state.last, rows.at(-1) ?? covered)
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

function flawOfCheckpoint(
  { checkpoint, removed, last }: AuditLogState,
  genuine: boolean,
): Flaw | null {
  if (checkpoint === null) {
    // The set-up of a tenant is in its audit log, so none is empty.
    if (last.number === 0) return { number: 1, what: 'is missing: the audit log is empty' }
    if (removed.number === 0) return null
    return { number: removed.number + 1, what: 'cannot be vouched for: the checkpoint is gone' }
  }
  if (!genuine) {
    return {
      number: removed.number + 1,
      what: 'cannot be vouched for: the checkpoint is not genuine',
    }
  }
  if (!isSame(removed, checkpoint.removed)) {
    const number = Math.min(removed.number, checkpoint.removed.number) + 1
    return { number, what: 'is not where the audit log begins in its checkpoint' }
  }
  // Events that the checkpoint covers are missing at the end; the events themselves are checked one by one.
  return last.number < checkpoint.last.number ? flawOfEnd(checkpoint.last, last) : null
}

/** Compares the expected end of the audit log with the actual one. */
function flawOfEnd(expected: ChainPosition, actual: ChainPosition): Flaw | null {
  if (actual.number < expected.number) return { number: actual.number + 1, what: 'is missing' }
  if (actual.number > expected.number) {
    return { number: expected.number + 1, what: 'is more than there should be' }
  }
  if (isSame(actual, expected)) return null
  return { number: actual.number, what: 'is not what the audit log should end with' }
}

/** Checks the events at the checkpoint and after it. */
class Tail {
  readonly #checkpoint: AuditCheckpoint | null
  #oldest: number | null = null

  constructor(checkpoint: AuditCheckpoint | null) {
    this.#checkpoint = checkpoint
  }

  flawOf(rows: readonly StoredAuditEvent[]): Flaw | null {
    const covered = this.#checkpoint?.last.number ?? 0
    for (const row of rows) {
      if (row.number === covered && !isSame(row, this.#checkpoint!.last)) {
        return {
          number: covered,
          what: 'is not the one in the checkpoint: it or one before was rewritten',
        }
      }
      if (row.number <= covered) continue
      const at = timeOfAuditEvent(row.entry)
      this.#oldest ??= at
      if (at - this.#oldest <= AUDIT_CHECKPOINT_LAG_MS_MAX) continue
      return { number: row.number, what: 'should have been in a checkpoint long ago' }
    }
    return null
  }

  flawOfEnd(position: ChainPosition): Flaw | null {
    if (this.#checkpoint === null || position.number >= this.#checkpoint.last.number) return null
    return { number: position.number + 1, what: 'is missing, and a checkpoint covers it' }
  }
}
