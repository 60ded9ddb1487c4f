import { commitAccess } from '../access/commit-access.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Change, Conflict } from '../ports/change.ts'
import { rejectAsOutage } from '../ports/store-outage.ts'
import type { World } from '../ports/world.ts'
import { auditEventsOf } from './audit-events.ts'
import type { RequestContext } from './context.ts'
import { sealAnswer } from './idempotency.ts'
import { requireSameRights } from './present-rights.ts'
import type { Answer } from './response.ts'
import { transactionRefusal } from './transaction.ts'

/**
 * Commits `changes` for the caller and, in the same commit, their audit events, those of every decision not recorded yet and, if
 * the request has an idempotency key, `replayAnswer`: what a replay is answered. It may say less than `answer`, because it outlives
 * security codes.
 *
 * A caller that sent an idempotency key gets that answer again if it repeats the request within a day; since change and answer
 * become durable together, a repetition can never do the work twice. Returns the conflict that prevented the changes, or null.
 *
 * If the caller's request is part of a transaction, changes to tokens wait for that transaction's commit; the answer does not.
 *
 * Changes of applications and keys come with their access state: commitAccess().
 *
 * Before changes the caller is identified again, so that a key that was revoked during the request changes nothing.
 *
 * Throws what requireSameRights() throws, `idempotency_in_flight` if another request with the same key came first,
 * `store_unavailable` if it is unknown whether the changes were made, `token_locked`, `transaction_full`, and the refusal of
 * transactionRefusal() if the transaction is not open.
 */
export async function commit(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  changes: readonly Change[],
  answer?: Answer,
  replayAnswer = answer,
): Promise<Conflict | null> {
  const { idempotency: scope, decisions } = context
  const checking = changes.length > 0 ? requireSameRights(context) : undefined
  if (checking !== undefined) await checking
  const now = world.clock.now()
  const decided = decisions.length
  const all = withAuditEvents(context, changes, now)
  const remember = replayAnswer !== undefined && scope !== null && !scope.remembered
  if (remember) {
    const sealed = await sealAnswer(world, context, scope, replayAnswer, now)
    all.push({ kind: 'remember-answer', answer: sealed, now })
  }
  if (all.length === 0) return null
  const conflict = await commitAccess(world, context.tenantId, all).catch(rejectAsOutage)
  if (conflict !== null) {
    await refuseConflict(world, context, conflict, isEnlisted(context, changes))
    return conflict
  }
  context.recorded = decided
  if (remember) scope.remembered = true
  return null
}

/**
 * Returns `changes` with the audit events that belong to them, in the order of the log. In a transaction, the changes happen when
 * it is committed, and their events are parked until then; the decisions were made now.
 */
function withAuditEvents(
  context: RequestContext,
  changes: readonly Change[],
  now: number,
): Change[] {
  const { decisions, recorded, transactionId, keys } = context
  const pending = recorded === 0 ? decisions : decisions.slice(recorded)
  const enlisted = isEnlisted(context, changes)
  const events = auditEventsOf(context, now, pending, enlisted ? [] : changes)
  const all = [...changes]
  if (enlisted) {
    const parked = auditEventsOf(context, now, [], changes)
    all.unshift({ kind: 'enlist', transactionId: transactionId!, keys, now })
    all.push({ kind: 'park-audit-events', transactionId: transactionId!, events: parked })
  }
  if (events.length > 0) all.push({ kind: 'append-audit-events', events })
  for (const it of changes) if (it.kind === 'end-transaction') all.push(endOfParked(it))
  return all
}

function isEnlisted({ transactionId }: RequestContext, changes: readonly Change[]): boolean {
  return transactionId !== undefined && changes.length > 0
}

/**
 * Returns the change that ends a transaction, with its parked events: changes in a transaction happen at its commit, or not at
 * all if it is rolled back.
 *
 * They follow the event that says who ended it. Their own times are those of their requests, up to an hour before, and
 * verification of an audit log measures from the first event that no checkpoint covers yet.
 */
function endOfParked({ as, id }: Extract<Change, { kind: 'end-transaction' }>): Change {
  return { kind: 'end-parked-audit-events', transactionId: id, append: as === 'committed' }
}

/** Throws the refusal for a conflict that no use case has to handle. */
async function refuseConflict(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  { kind }: Conflict,
  enlisted: boolean,
): Promise<void> {
  if (kind === 'answer-taken') throw new ServiceError('idempotency_in_flight')
  if (kind === 'token-locked') throw new ServiceError('token_locked')
  if (kind === 'transaction-full') throw new ServiceError('transaction_full')
  if (kind !== 'transaction-not-open' || !enlisted) return
  throw (
    (await transactionRefusal(world, context, context.transactionId!)) ??
    new Error('Cannot commit: the clock stepped back while the transaction ended')
  )
}
