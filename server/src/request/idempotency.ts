/**
 * Idempotency keys: a caller that repeats a request within a day gets the first answer again, and the work is done once.
 *
 * The answer is committed with the changes it is about. Source: interface.md, Idempotency.
 */
import { hash } from 'node:crypto'
import type { Decision, Principal } from '../base/access.ts'
import { grantsAmong, requireGrants, type PastGrant } from '../access/authorize.ts'
import { IDEMPOTENCY_LIFETIME_MS } from '../base/limits.ts'
import { Sensitive } from '../base/sensitive.ts'
import { sealContextOf } from '../ports/store/entities.ts'
import type { StoredAnswer } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import type { RequestContext } from './context.ts'
import { parseKeptAnswer, renderKeptAnswer } from './kept-answer.ts'
import { openValue } from './open-value.ts'
import type { Answer } from './response.ts'

/** One idempotency key of one application, or of one session, on one operation. */
export interface IdempotencyScope {
  /**
   * SHA-256 over application or session, method, endpoint, path parameters and key; for a public application, also over the body.
   * Opaque to stores.
   */
  id: string
  /** Whether the answer has been committed, so that it is not committed a second time. */
  remembered: boolean
  /** Decisions of the request, which the answer rests on; code that acts for another principal has its own. */
  readonly decisions: readonly Decision[]
}

export interface KeyedRequest {
  /** The idempotency key. */
  readonly key: string
  readonly method: string
  /** The endpoint's. */
  readonly path: string
  /** Path parameters, decoded: another percent-encoding names the same operation. */
  readonly params: unknown
  readonly transactionId: string | undefined
  readonly decisions: readonly Decision[]
}

/** Returns the scope of a request that has an idempotency key. */
export function idempotencyScopeOf(
  principal: Principal,
  { key, method, path, params, transactionId, decisions }: KeyedRequest,
): IdempotencyScope {
  // A session's answers depend on its rights: they are not replayed to other callers of its application.
  const principalId = principal.type === 'session' ? principal.keyId : principal.applicationId
  // A transaction may have been rolled back: a replay never crosses transactions.
  const within = transactionId === undefined ? [] : [transactionId.toLowerCase()]
  const scope = [principalId, method, path, params, key, ...within]
  return { id: hash('sha256', JSON.stringify(scope), 'base64url'), remembered: false, decisions }
}

/**
 * Binds the idempotency key of a public application to the body that came with it.
 *
 * Such an application's key is in every browser, and idempotency keys can be guessed: by the key alone, one visitor would get the
 * answer to another's request, or have his own answer given away. A client that repeats a request repeats its body.
 */
export async function bindToBody(
  world: Pick<World, 'keyring'>,
  { tenantId, type, idempotency: scope }: RequestContext,
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
export async function rememberedAnswer(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
): Promise<Answer | null> {
  const scope = context.idempotency
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

/** Returns `answer` as it is stored, encrypted, until its time is over. */
export async function sealAnswer(
  world: Pick<World, 'keyring'>,
  { tenantId, kept }: RequestContext,
  scope: IdempotencyScope,
  { status, ...rest }: Answer,
  now: number,
): Promise<StoredAnswer> {
  const keys = await world.keyring.open(tenantId)
  const granted: GrantedAnswer = { ...rest, grants: grantsAmong(scope.decisions) }
  const text = new Sensitive(renderKeptAnswer(granted))
  return {
    id: scope.id,
    status,
    body: keys.seal(sealContextOf('answer', 'answer', scope.id), text),
    expiresAt: Math.min(now + IDEMPOTENCY_LIFETIME_MS, kept?.until ?? Infinity),
  }
}

/** Has all that is kept of the answer deleted by the earliest of `ends`, in epoch milliseconds; null for never. */
export function keepUntil(
  { kept }: Pick<RequestContext, 'kept'>,
  ...ends: readonly (number | null)[]
): void {
  if (kept === undefined) return
  for (const end of ends) if (end !== null && end < kept.until) kept.until = end
}

/** An answer with the grants it rests on. */
interface GrantedAnswer extends Partial<Answer> {
  readonly grants?: readonly PastGrant[]
}
