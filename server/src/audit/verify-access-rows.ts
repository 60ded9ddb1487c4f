/** Verification of access rows: finds out whether applications, keys and sessions are as the service wrote them. */
import { flawOfAccessState } from '../access/access-state-flaw.ts'
import { AccessSum } from '../access/access-sum.ts'
import type { AccessRow, AccessTable } from '../ports/access-state.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { World } from '../ports/world.ts'

type VerifyWorld = Pick<World, 'clock' | 'keyring'> & {
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
 * If the rows change meanwhile, starts again; after too many changes it returns the verdict without the rows.
 */
export async function verifyAccessRows(
  world: VerifyWorld,
  tenantId: string,
): Promise<AccessVerdict> {
  const { auditLog } = world.store
  const keys = await world.keyring.open(tenantId)
  for (let attempt = 1; ; attempt++) {
    const state = await auditLog.state(tenantId)
    const access = state?.access ?? null
    const revision = access?.revision ?? 0
    const checkpoint = state?.checkpoint ?? null
    const ofState = flawOfAccessState(keys, tenantId, { access, checkpoint })
    if (ofState !== null) return { revision, flaw: `the access state ${ofState}` }
    const sealed = AccessSum.of(keys, tenantId, access!)
    const ofRows = await flawOfRows(world, keys, tenantId, sealed)
    const unchanged = (await auditLog.state(tenantId))?.access?.revision === revision
    if (!unchanged && attempt < ATTEMPTS_MAX) continue
    const flaw = (unchanged ? ofRows : null) ?? (await flawOfSessions(world, keys, tenantId))
    return { revision, flaw }
  }
}

async function flawOfRows(
  world: VerifyWorld,
  keys: TenantKeys,
  tenantId: string,
  sealed: AccessSum,
): Promise<string | null> {
  const sum = new AccessSum(keys, tenantId)
  for await (const [table, { id, statement }] of rowsOf(world, tenantId)) {
    if (statement === null) return `${NAMES[table]} ${id} was changed ${OUTSIDE}`
    sum.add(statement)
  }
  if (sum.equals(sealed)) return null
  for await (const [table, { id, statement }] of rowsOf(world, tenantId)) {
    if (statement !== null && sealed.isWithout(sum, [statement])) {
      return `${NAMES[table]} ${id} was added ${OUTSIDE}`
    }
  }
  return `an application or key was added, changed, removed or put back ${OUTSIDE}`
}

async function* rowsOf(
  { clock, store }: VerifyWorld,
  tenantId: string,
): AsyncGenerator<[keyof typeof NAMES, AccessRow]> {
  for (const table of ['applications', 'application_keys'] as const) {
    for await (const rows of store.accessRows(tenantId, table)) {
      for (const it of rows) yield [table, it]
      await clock.yield()
    }
  }
}

async function flawOfSessions(
  { clock, store }: VerifyWorld,
  keys: TenantKeys,
  tenantId: string,
): Promise<string | null> {
  let [count, first] = [0, '']
  for await (const rows of store.accessRows(tenantId, 'sessions')) {
    for (const { id, statement, proof } of rows) {
      if (statement !== null && proof !== null && keys.attests(statement, proof)) continue
      if (count++ === 0) first = id
    }
    await clock.yield()
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

const NAMES = {
  applications: 'application',
  application_keys: 'application key',
} as const satisfies Partial<Record<AccessTable, string>>
const OUTSIDE = 'outside the service'

/** Each attempt loses to a change of an application or a key. */
const ATTEMPTS_MAX = 5
