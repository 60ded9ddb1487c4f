/** Verification of access rows: finds out whether applications, keys and sessions are as the service wrote them. */
import { isDeepStrictEqual } from 'node:util'
import { flawOfAccessState, flawOfRevision, isVouchedFor } from '../access/access-state-flaw.ts'
import { AccessSum } from '../access/access-sum.ts'
import { AUDIT_EVENTS_AT_ONCE } from '../base/limits.ts'
import { TimeSlice } from '../base/time-slice.ts'
import { accessChangesIn, type AccessRow } from '../ports/access-state.ts'
import {
  CHAIN_START,
  decodeAuditEventSummary,
  type AuditEventSummary,
  type StoredAuditEvent,
} from '../ports/audit-log.ts'
import type { AuditLogState } from '../ports/store.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { World } from '../ports/world.ts'

type AccessRowsWorld = Pick<World, 'clock' | 'keyring'> & {
  readonly store: Pick<World['store'], 'accessRows' | 'auditLog'>
}

export interface AccessVerdict {
  /** Number of changes of applications and keys; 0 if there is no access state. */
  readonly revision: number
  /** A sentence; null if everything is intact. */
  readonly flaw: string | null
}

/**
 * Reads every application, key and session of a tenant, and compares them with their access state and proofs.
 *
 * If they change meanwhile, starts again.
 */
export async function verifyAccessRows(
  world: AccessRowsWorld,
  tenantId: string,
): Promise<AccessVerdict> {
  const { auditLog } = world.store
  const keys = await world.keyring.open(tenantId)
  let revision = 0
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const state = (await auditLog.state(tenantId)) ?? NO_STATE
    revision = state.access?.revision ?? 0
    const flaw = await flawOfApplications(world, keys, tenantId, state)
    if (flaw === null) break
    const now = (await auditLog.state(tenantId)) ?? NO_STATE
    if (isDeepStrictEqual(pointOf(now), pointOf(state))) return { revision, flaw }
  }
  return { revision, flaw: await flawOfSessions(world, keys, tenantId) }
}

/** Whether the checkpoint of the tenant seals an access state: in a store that was not upgraded, none does before its upgrade. */
export async function isAccessSealed(
  { auditLog }: Pick<AccessRowsWorld['store'], 'auditLog'>,
  tenantId: string,
): Promise<boolean> {
  return (await auditLog.state(tenantId))?.checkpoint?.access != null
}

const NO_STATE: AuditLogState = {
  removed: CHAIN_START,
  last: CHAIN_START,
  checkpoint: null,
  access: null,
}

/** Changes with the rows and with the checkpoint, and not with every event. */
function pointOf({ removed, checkpoint, access }: AuditLogState): (number | undefined)[] {
  return [removed.number, checkpoint?.last.number, access?.revision]
}

async function flawOfApplications(
  world: AccessRowsWorld,
  keys: TenantKeys,
  tenantId: string,
  state: AuditLogState,
): Promise<string | null> {
  const { access } = state
  const ofState = flawOfAccessState(keys, tenantId, state)
  if (access === null || ofState !== null) return `the access state ${ofState}`
  const ofRevision = flawOfRevision(state, await changesSinceCheckpoint(world, tenantId, state))
  if (ofRevision !== null && isVouchedFor(keys, tenantId, state)) {
    return `the access state ${ofRevision}`
  }
  return await flawOfRows(world, keys, tenantId, AccessSum.of(keys, tenantId, access))
}

/** The number of changes of applications and keys that the newest events tell of. */
async function changesSinceCheckpoint(
  { clock, store }: AccessRowsWorld,
  tenantId: string,
  { checkpoint, last }: AuditLogState,
): Promise<number> {
  const slice = new TimeSlice(clock)
  let changes = 0
  let number = checkpoint?.last.number ?? last.number
  while (number < last.number) {
    const count = Math.min(last.number - number, AUDIT_EVENTS_AT_ONCE)
    const rows = await store.auditLog.rowsAfter(tenantId, number, count)
    if (rows.length === 0) break
    changes += accessChangesIn(rows.flatMap(summaryOf))
    number = rows.at(-1)!.number
    await slice.yieldIfDue()
  }
  return changes
}

/** Nothing for an event that cannot be read: verification of the audit log names it. */
function summaryOf({ entry }: StoredAuditEvent): AuditEventSummary[] {
  try {
    return [decodeAuditEventSummary(entry)]
  } catch {
    return []
  }
}

async function flawOfRows(
  world: AccessRowsWorld,
  keys: TenantKeys,
  tenantId: string,
  sealed: AccessSum,
): Promise<string | null> {
  const sum = new AccessSum(keys, tenantId)
  for await (const [name, { id, statement }] of rowsOf(world, tenantId)) {
    if (statement === null) return `${name} ${id} was changed ${OUTSIDE}`
    sum.add(statement)
  }
  if (sum.equals(sealed)) return null
  for await (const [name, { id, statement }] of rowsOf(world, tenantId)) {
    if (statement !== null && sealed.isWithout(sum, [statement])) {
      return `${name} ${id} was added ${OUTSIDE}`
    }
  }
  return `an application or key was added, changed, removed or put back ${OUTSIDE}`
}

async function* rowsOf(
  { clock, store }: AccessRowsWorld,
  tenantId: string,
): AsyncGenerator<[name: string, row: AccessRow]> {
  const slice = new TimeSlice(clock)
  for (const [table, name] of SEALED) {
    for await (const rows of store.accessRows(tenantId, table)) {
      for (const it of rows) yield [name, it]
      await slice.yieldIfDue()
    }
  }
}

async function flawOfSessions(
  { clock, store }: AccessRowsWorld,
  keys: TenantKeys,
  tenantId: string,
): Promise<string | null> {
  const slice = new TimeSlice(clock)
  let [count, first] = [0, '']
  for await (const rows of store.accessRows(tenantId, 'sessions')) {
    for (const { id, statement, proof } of rows) {
      if (statement !== null && proof !== null && keys.attests(statement, proof)) continue
      if (count++ === 0) first = id
    }
    await slice.yieldIfDue()
  }
  if (count === 0) return null
  return count === 1
    ? `session ${first} was added or changed ${OUTSIDE}`
    : `${count} sessions, the first of them ${first}, were added or changed ${OUTSIDE}`
}

/**
 * Returns a function that verifies the access rows of every tenant. Logs a flaw once, and that a tenant cannot be verified, since its
 * keys are damaged, for example.
 */
export function accessChecker(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
): () => Promise<void> {
  const reported = new Set<string>()
  return async () => {
    for (const tenantId of await world.store.tenants.ids()) {
      const failure = await failureOf(world, tenantId)
      if (failure === null) reported.delete(tenantId)
      else if (!reported.has(tenantId)) {
        world.log.error(failure.event, failure.error, { tenant: tenantId })
        reported.add(tenantId)
      }
    }
  }
}

async function failureOf(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  tenantId: string,
): Promise<{ readonly event: string; readonly error: unknown } | null> {
  try {
    const { flaw } = await verifyAccessRows(world, tenantId)
    if (flaw === null || (await isDeleted(world, tenantId))) return null
    return { event: 'access_altered', error: new Error(`Cannot vouch for access: ${flaw}`) }
  } catch (error) {
    return (await isDeleted(world, tenantId)) ? null : { event: 'access_not_verified', error }
  }
}

async function isDeleted({ store }: Pick<World, 'store'>, tenantId: string): Promise<boolean> {
  return (await store.tenants.find(tenantId)) === null
}

/** The tables that the access state seals, and what their rows are called. */
const SEALED = [
  ['applications', 'application'],
  ['application_keys', 'application key'],
] as const
const OUTSIDE = 'outside the service'

/** Each attempt loses to a change of an application or a key. */
const ATTEMPTS_MAX = 5
