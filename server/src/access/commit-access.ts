import { FairSemaphore } from '../base/fair-semaphore.ts'
import { COMMIT_WAIT_MS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { UnreadableValue } from '../ports/unreadable-value.ts'
import {
  accessChangesIn,
  applicationKeyStatement,
  applicationStatement,
  changesAccess,
} from '../ports/access-state.ts'
import type { Change, Conflict } from '../ports/change.ts'
import { idOf } from '../ports/store/entity-change.ts'
import type { World } from '../ports/world.ts'
import { flawOfAccessState, isVouchedFor } from './access-state-flaw.ts'
import { AccessSum } from './access-sum.ts'

type AccessWorld = Pick<World, 'clock' | 'keyring' | 'store'>

/**
 * Makes the changes, as Store.commit() does; if they change applications or keys, together with the access state that seals the
 * result.
 *
 * The state is computed from the one before. If another server changes it meanwhile, computes it again; changes of one tenant in
 * this process run one after the other. A state that is gone, not genuine or older than the checkpoint is left as it is, and so is
 * one if the rows before the change cannot be read: the change is made, since an operator must be able to revoke a key, and
 * verification keeps naming what happened. Decision 0082.
 *
 * Throws `store_unavailable` after too many attempts, or if the changes before take too long.
 */
export async function commitAccess(
  world: AccessWorld,
  tenantId: string,
  changes: readonly Change[],
): Promise<Conflict | null> {
  if (!changes.some(changesAccess)) return await world.store.commit(tenantId, changes)
  const since = world.clock.elapsed()
  return await turnsOf(world.store).run(tenantId, async () => {
    if (world.clock.elapsed() - since > COMMIT_WAIT_MS_MAX) {
      throw new ServiceError('store_unavailable')
    }
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const state = await nextState(world, tenantId, changes)
      const conflict = await world.store.commit(tenantId, [...changes, state])
      if (conflict?.kind !== 'access-changed') return conflict
    }
    throw new ServiceError('store_unavailable')
  })
}

/** Returns the change of the access state that belongs to `changes`. */
async function nextState(
  world: AccessWorld,
  tenantId: string,
  changes: readonly Change[],
): Promise<Change> {
  const made = requireEvents(changes)
  requireDistinct(changes)
  const keys = await world.keyring.open(tenantId)
  try {
    // Read before the rows: if they change in between, the state does.
    const state = await world.store.auditLog.state(tenantId)
    if (state?.access == null || !isVouchedFor(keys, tenantId, state)) return LEFT
    if (flawOfAccessState(keys, tenantId, state) !== null) return LEFT
    const { revision } = state.access
    const sum = AccessSum.of(keys, tenantId, state.access)
    for (const it of changes) await apply(world, tenantId, it, sum)
    return { kind: 'put-access-state', before: revision, state: sum.state(revision + made) }
  } catch (error) {
    // Without the key nothing can be proven, and restoring a backup makes the state again.
    if (error instanceof UnreadableValue || isUnreadableRow(error)) return LEFT
    throw error
  }
}

/** Whether an attacker wrote a value that a store does not: JSON that cannot be parsed, another type, or a number too large. */
function isUnreadableRow(error: unknown): boolean {
  return [SyntaxError, TypeError, RangeError].some((it) => error instanceof it)
}

/** A row that is not there makes the commit a conflict. */
async function apply(
  { store }: Pick<World, 'store'>,
  tenantId: string,
  change: Change,
  sum: AccessSum,
): Promise<void> {
  const removeApplication = async (id: string): Promise<void> => {
    const before = await store.applications.find(tenantId, id)
    if (before !== null) sum.remove(applicationStatement(tenantId, before))
  }
  if (!('entity' in change)) return
  if (change.entity === 'application') {
    if (change.kind !== 'insert') await removeApplication(idOf(change)!)
    if (change.kind !== 'delete') return sum.add(applicationStatement(tenantId, change.row))
    for (const it of await store.applications.keys(tenantId, change.id)) {
      sum.remove(applicationKeyStatement(tenantId, it))
    }
  } else if (change.entity === 'application_key') {
    if (change.kind === 'insert') return sum.add(applicationKeyStatement(tenantId, change.row))
    const keys = await store.applications.keys(tenantId, change.applicationId)
    const before = keys.find((it) => it.id === change.id)
    if (before !== undefined) sum.remove(applicationKeyStatement(tenantId, before))
  } else if (changesAccess(change)) {
    throw new TypeError(`Cannot commit: no access state can cover rows of ${change.entity}`)
  }
}

/** Returns the number of changes of applications and keys. Throws unless the commit has as many events for them. */
function requireEvents(changes: readonly Change[]): number {
  const made = changes.filter(changesAccess).length
  const events = changes.flatMap((it) => (it.kind === 'append-audit-events' ? it.events : []))
  if (accessChangesIn(events) === made) return made
  throw new TypeError('Cannot commit: applications or keys change without their audit events')
}

/** The rows before the commit are read from the store, so that no row may change twice in it. */
function requireDistinct(changes: readonly Change[]): void {
  const seen = new Set<string>()
  for (const it of changes) {
    const row = rowOf(it)
    if (row === null) continue
    if (seen.has(row)) throw new TypeError('Cannot commit: an application or key changes twice')
    seen.add(row)
  }
}

function rowOf(change: Change): string | null {
  if (!('entity' in change) || !changesAccess(change)) return null
  return `${change.entity} ${idOf(change)}`
}

/** Lets the changes of each tenant in a store run one after the other. */
function turnsOf(store: object): FairSemaphore {
  const turns = turnsOfStores.get(store) ?? new FairSemaphore({ ownerMax: 1 })
  turnsOfStores.set(store, turns)
  return turns
}

const turnsOfStores = new WeakMap<object, FairSemaphore>()

const LEFT: Change = { kind: 'leave-access-state' }

/** Each attempt loses to another server. */
const ATTEMPTS_MAX = 20
