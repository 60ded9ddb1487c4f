import type { RequestContext, ReplayScope } from '../base/access.ts'
import { IDEMPOTENCY_LIFETIME_MS } from '../base/limits.ts'
import { requireSameRights } from '../base/present-rights.ts'
import { Sensitive } from '../base/sensitive.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Answer } from '../http/endpoint.ts'
import { parseKeptAnswer, renderKeptAnswer } from '../http/kept-answer.ts'
import { sealContextOf } from '../ports/store/entities.ts'
import type { Change, Conflict } from '../ports/change.ts'
import type { StoredAnswer } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { auditEventsOf } from './audit-events.ts'
import { grantsAmong, requireGrants, type PastGrant } from './authorize.ts'
import { commitAccess } from './commit-access.ts'
import { transactionRefusal } from './enlist.ts'
import { openValue } from './open-value.ts'

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
  const { replay, tenantId, decisions, transactionId, keys } = context
  const checking = changes.length > 0 ? requireSameRights(context) : undefined
  if (checking !== undefined) await checking
  const remember = replayAnswer !== undefined && replay !== null && !replay.remembered
  const enlisted = transactionId !== undefined && changes.length > 0
  const now = world.clock.now()
  const decided = decisions.length
  const pending = context.recorded === 0 ? decisions : decisions.slice(context.recorded)
  // A transaction's changes happen when it is committed; the decisions were made now.
  const events = auditEventsOf(context, now, pending, enlisted ? [] : changes)
  const all = [...changes]
  if (enlisted) {
    all.unshift({ kind: 'enlist', transactionId, keys, now })
    all.push({
      kind: 'park-audit-events',
      transactionId,
      events: auditEventsOf(context, now, [], changes),
    })
  }
  if (events.length > 0) all.push({ kind: 'append-audit-events', events })
  for (const it of changes) if (it.kind === 'end-transaction') all.push(endOfParked(it))
  if (remember) {
    const answer = await seal(world, context, replay, replayAnswer, now)
    all.push({ kind: 'remember-answer', answer, now })
  }
  if (all.length === 0) return null
  let conflict: Conflict | null
  try {
    conflict = await commitAccess(world, tenantId, all)
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause
    throw new ServiceError('store_unavailable', undefined, { cause })
  }
  if (conflict?.kind === 'answer-taken') throw new ServiceError('idempotency_in_flight')
  if (conflict?.kind === 'token-locked') throw new ServiceError('token_locked')
  if (conflict?.kind === 'transaction-full') throw new ServiceError('transaction_full')
  if (conflict?.kind === 'transaction-not-open' && enlisted) {
    throw (
      (await transactionRefusal(world, context, transactionId)) ??
      new Error('Cannot commit: the clock stepped back while the transaction ended')
    )
  }
  if (conflict !== null) return conflict
  context.recorded = decided
  if (remember) replay.remembered = true
  return null
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

/**
 * Binds the idempotency key of a public application to the body that came with it.
 *
 * Such an application's key is in every browser, and idempotency keys can be guessed: by the key alone, one visitor would get the
 * answer to another's request, or have his own answer given away. A client that repeats a request repeats its body.
 */
export async function bindReplay(
  world: Pick<World, 'keyring'>,
  { tenantId, type, replay: scope }: RequestContext,
  body: Uint8Array,
): Promise<void> {
  if (scope === null || type !== 'public') return
  const keys = await world.keyring.open(tenantId)
  const text = new Sensitive(Buffer.from(body).toString('latin1'))
  scope.id = keys.fingerprint(`idempotency ${scope.id}`, text)
}

/**
 * Returns the answer remembered for the caller's idempotency key, or null if there is none.
 *
 * Throws `value_unreadable` if it is damaged: the request was carried out once, and must not be carried out again. Throws
 * `permission_missing` if the caller could not get the answer with the rights it has now.
 */
export async function replay(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
): Promise<Answer | null> {
  const scope = context.replay
  if (scope === null) return null
  const stored = await world.store.answers.find(context.tenantId, scope.id, world.clock.now())
  if (stored === null) return null
  const keys = await world.keyring.open(context.tenantId)
  const name = { kind: 'idempotency_response', id: stored.id } as const
  const opened = openValue(keys, sealContextOf('answer', 'answer', scope.id), stored.body, name)
  scope.remembered = true
  // Answers that an older version kept have no grants; they are deleted within a day of the upgrade.
  const { grants = [], ...answer } = parseKeptAnswer(opened.reveal()) as GrantedAnswer
  requireGrants(context, grants)
  // The replacement for a damaged answer has its own status; the one stored beside it is the original's.
  return { status: stored.status, ...answer }
}

async function seal(
  world: Pick<World, 'keyring'>,
  context: RequestContext,
  scope: ReplayScope,
  answer: Answer,
  now: number,
): Promise<StoredAnswer> {
  const keys = await world.keyring.open(context.tenantId)
  const { status, ...rest } = answer
  const kept: GrantedAnswer = { ...rest, grants: grantsAmong(scope.decisions) }
  return {
    id: scope.id,
    status,
    body: keys.seal(
      sealContextOf('answer', 'answer', scope.id),
      new Sensitive(renderKeptAnswer(kept)),
    ),
    expiresAt: Math.min(now + IDEMPOTENCY_LIFETIME_MS, context.kept?.until ?? Infinity),
  }
}

/** An answer with the grants it rests on. */
interface GrantedAnswer extends Partial<Answer> {
  readonly grants?: readonly PastGrant[]
}
