import { TimeSlice } from '../base/time-slice.ts'
import type { AccessState } from '../ports/access-state.ts'
import type { Change } from '../ports/change.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { World } from '../ports/world.ts'
import { isGenuineAccess } from './access-state-flaw.ts'
import { AccessSum } from './access-sum.ts'

type SealWorld = Pick<World, 'clock' | 'keyring'> & {
  readonly store: Pick<World['store'], 'accessRows' | 'auditLog' | 'commit'>
}

/**
 * Vouches for the applications, keys and sessions of a tenant as they are, and returns their access state: for a database of an older
 * version, and for a tenant whose key for proofs was replaced. A genuine state is kept: another server may have made it meanwhile.
 * Decision 0082.
 *
 * Rejects if a row cannot be read, or if rows change too often.
 */
export async function sealAccessRows(world: SealWorld, tenantId: string): Promise<AccessState> {
  const { store } = world
  const keys = await world.keyring.open(tenantId)
  await proveSessions(world, keys, tenantId)
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const access = (await store.auditLog.state(tenantId))?.access ?? null
    if (access !== null && isGenuineAccess(keys, tenantId, access)) return access
    const before = access?.revision ?? 0
    const state = (await sumOfRows(world, keys, tenantId)).state(before + 1)
    const conflict = await store.commit(tenantId, [{ kind: 'put-access-state', before, state }])
    if (conflict === null) return state
  }
  throw new Error('Cannot seal applications and keys: they change too often')
}

async function sumOfRows(
  { clock, store }: SealWorld,
  keys: TenantKeys,
  tenantId: string,
): Promise<AccessSum> {
  const sum = new AccessSum(keys, tenantId)
  const slice = new TimeSlice(clock)
  for (const table of ['applications', 'application_keys'] as const) {
    for await (const rows of store.accessRows(tenantId, table)) {
      for (const { id, statement } of rows) {
        if (statement === null) throw new Error(`Cannot seal row ${id} of ${table}: it is damaged`)
        sum.add(statement)
      }
      await slice.yieldIfDue()
    }
  }
  return sum
}

async function proveSessions(
  { clock, store }: SealWorld,
  keys: TenantKeys,
  tenantId: string,
): Promise<void> {
  const slice = new TimeSlice(clock)
  for await (const rows of store.accessRows(tenantId, 'sessions')) {
    const changes: Change[] = []
    for (const { id, statement, proof: before } of rows) {
      // A session that cannot be read cannot be used either.
      if (statement === null || (before !== null && keys.attests(statement, before))) continue
      changes.push({ kind: 'prove-session', id, before, proof: keys.attest(statement) })
    }
    if (changes.length > 0) await store.commit(tenantId, changes)
    await slice.yieldIfDue()
  }
}

/** Each attempt loses to another server. */
const ATTEMPTS_MAX = 20
