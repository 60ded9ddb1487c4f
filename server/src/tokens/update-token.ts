import { authorize } from '../access/authorize.ts'
import { commit } from '../request/commit.ts'
import { keepUntil } from '../request/idempotency.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import { ok, type Answer } from '../request/response.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { FoundToken, StoredToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { asksToDeduplicate, fingerprintOf, indexesOf } from './derive.ts'
import { parseDraft, type Draft } from './draft.ts'
import { readLive } from './find-live.ts'
import { evaluationContextFor } from './build-tokens.ts'
import type { BuiltToken } from './render-tokens.ts'
import { parsePatch, patchedRequest, touchesShortLived, type TokenPatch } from './patch.ts'
import { renderBuiltToken } from './render-built-token.ts'
import { openData, sealData, withoutShortLived } from './sealing.ts'
import type { TokenSettings } from './token-settings.ts'
import {
  duplicateContainers,
  duplicateViewer,
  findDuplicate,
  type DuplicateSearch,
} from './deduplication.ts'
import { ReadBudget } from './read-budget.ts'

/** One update request, unchanged over all its attempts. */
interface TokenUpdate {
  readonly id: string
  readonly body: Json
  readonly settings: TokenSettings
}

/**
 * Applies a merge patch to a token and returns the token, its data shown as the caller's update permission allows.
 *
 * Only the version that was read is changed: if another request was faster, it is read again. An update that would make
 * the token a duplicate of one that the caller may find, where deduplication is on, is not applied: the answer describes the
 * other token.
 *
 * Throws `token_not_found`, `permission_missing`, `token_busy`, and what patchedRequest(), parseDraft() and commit() throw.
 * Source: interface.md, Update a token.
 */
export async function updateToken(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  update: TokenUpdate,
): Promise<Answer> {
  for (let attempt = 1; attempt <= UPDATE_ATTEMPTS_MAX; attempt++) {
    const answer = await updateOnce(world, context, update)
    if (answer !== null) return answer
  }
  throw new ServiceError('token_busy')
}

/** Each failed attempt lost to another request that succeeded. */
export const UPDATE_ATTEMPTS_MAX = 100

/** Returns null if the token has changed since it was read. */
async function updateOnce(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  { id, body, settings }: TokenUpdate,
): Promise<Answer | null> {
  const attempt = await readAndChange(world, context, id, body)
  const { built, token, search, deduplicates } = attempt
  const findsAll = search.containers === null
  // The store knows only all duplicates, so for a caller that finds some of them they are looked up before.
  if (deduplicates && !findsAll) {
    const found = await answerWithDuplicate(world, attempt, settings)
    if (found !== null) return found
  }
  const unlessDuplicate = deduplicates && findsAll
  const change = { kind: 'update-token', token, unlessDuplicate, now: search.now } as const
  const answer = ok(renderBuiltToken(context, built, settings))
  keepUntil(context, token.expiresAt)
  const replayAnswer = token.cvc === null ? answer : agedAnswer(context, built, settings)
  const conflict = await commit(world, context, [change], answer, replayAnswer)
  if (conflict === null) return answer
  if (conflict.kind === 'fingerprint-taken')
    return await answerWithDuplicate(world, attempt, settings)
  if (conflict.kind === 'token-changed') return null
  throw new Error(`Cannot update a token: the store answered ${conflict.kind}`)
}

/** What one attempt would commit. */
interface UpdateAttempt {
  readonly keys: TenantKeys
  readonly token: StoredToken
  readonly built: BuiltToken
  readonly search: DuplicateSearch
  /** Whether the token must not become a duplicate. Existing duplicates, perhaps created by two transactions, can still be changed. */
  readonly deduplicates: boolean
}

async function readAndChange(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
  body: Json,
): Promise<UpdateAttempt> {
  const now = world.clock.now()
  const permission = 'token:update'
  const reading = { permission, now, always: true } as const
  const { token: before, grant } = await readLive(world, context, id, reading)
  const patch = parsePatch(body)
  if (isInPages(context)) refuseExpressions(patch, before)
  const keys = await world.keyring.open(context.tenantId)
  const request = patchedRequest(before, openData(keys, before, now, grant), patch)
  const draft = parseDraft(request, now, (member) => member)
  // Both the old and the new containers: moving a token never shows more of it.
  const containers = [...new Set([...before.containers, ...draft.options.containers])]
  const { transform } = authorize(context, permission, { ...before, containers })
  const evaluationContext = evaluationContextFor(world.random, context, 1)
  const token = changedToken(context, keys, {
    before,
    draft: { ...draft, ...asking(before, draft, patch) },
    patch,
    now,
    evaluationContext,
  })
  const shown = isInPages(context)
    ? ({ token: { ...token, fingerprint: null }, transform: 'redact' } as const)
    : { token, transform }
  return {
    keys,
    token,
    built: { draft, ...shown, duplicate: undefined, evaluationContext, shortLivedExpired: false },
    search: { context, containers: duplicateContainers(context), grants: new Map(), now },
    deduplicates: token.fingerprint !== before.fingerprint && asksToDeduplicate(draft, context),
  }
}

/**
 * Whether the caller's key belongs in pages: those of the origins that its application lists. Every script of such a page has the
 * key and the ids of tokens, and must not read with them what the page's card fields keep from it. Decision 0107.
 */
function isInPages({ type, allowedOrigins }: RequestContext): boolean {
  return type === 'public' && allowedOrigins !== null
}

/**
 * Throws `token_invalid` if the patch sets an expression: its results tell of data that the caller did not send. Likewise if it
 * puts data under a mask that shows much of it, which the page may have chosen when it created the token.
 */
function refuseExpressions(patch: TokenPatch, { details }: FoundToken): void {
  const errors: Record<string, readonly string[]> = {}
  for (const it of EXPRESSION_MEMBERS) {
    if (patch[it] !== undefined) {
      errors[it] = ['A key of an application with allowed_origins cannot change this member.']
    }
  }
  if (patch['data'] !== undefined && !showsLittle(details?.['mask'] ?? null)) {
    errors['data'] = [
      'A key of an application with allowed_origins cannot change data whose mask shows more than the first six or ' +
        'last four digits and the expiry date.',
    ]
  }
  if (Object.keys(errors).length > 0) throw new ServiceError('token_invalid', errors)
}

/** Whether a mask is as a page may set it through card fields. */
function showsLittle(mask: Json): boolean {
  if (typeof mask === 'string') return !mask.includes('{{') || LITTLE.test(mask)
  if (typeof mask !== 'object' || mask === null) return true
  return Object.values(mask).every((it) => showsLittle(it))
}

/** The same as in the card fields: fields/src/frame/token-options.ts. */
const LITTLE =
  /^\{\{\s*data\.(?:expiration_(?:month|year)|number\s*\|\s*reveal_(?:last:\s*[0-4]|first:\s*[0-6]))\s*\}\}$/

const EXPRESSION_MEMBERS = ['mask', 'search_indexes', 'fingerprint_expression'] as const

/** Returns the answer to a replay of the request, which may come after the security code has expired. */
function agedAnswer(context: RequestContext, built: BuiltToken, settings: TokenSettings): Answer {
  const draft = withoutShortLived(built.draft)
  return ok(renderBuiltToken(context, { ...built, draft, shortLivedExpired: true }, settings))
}

/** Answers with the duplicate that the changed token would have; null if the caller finds none. */
async function answerWithDuplicate(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  { keys, token, built, search }: UpdateAttempt,
  settings: TokenSettings,
): Promise<Answer | null> {
  const { context, now } = search
  const { type, fingerprint } = token
  if (fingerprint === null) return null
  const of = { type, fingerprint }
  const duplicate = await findDuplicate(world, search, of, new ReadBudget(context))
  if (duplicate === null) return null
  const shown = (at: number): Answer => {
    const { evaluationContext } = built
    const view = duplicateViewer(search, keys, { now: at, evaluationContext })(duplicate)
    if (view !== null) keepUntil(context, duplicate.expiresAt)
    return ok(renderBuiltToken(context, { ...built, token: duplicate, duplicate: view }, settings))
  }
  const found = shown(now)
  await commit(world, context, [], found, duplicate.cvc === null ? found : shown(Infinity))
  return found
}

/** A token with a fingerprint keeps one unless the patch removes its expression. */
function asking(
  { fingerprint }: FoundToken,
  { options }: Draft,
  patch: TokenPatch,
): Pick<Draft, 'options'> {
  const keeps = fingerprint !== null && patch['fingerprint_expression'] !== null
  return { options: { ...options, fingerprintAsked: options.fingerprintAsked || keeps } }
}

interface Changing {
  readonly before: FoundToken
  readonly draft: Draft
  readonly patch: TokenPatch
  readonly now: number
  readonly evaluationContext: BuiltToken['evaluationContext']
}

function changedToken(
  context: RequestContext,
  keys: TenantKeys,
  { before, draft, patch, now, evaluationContext }: Changing,
): StoredToken {
  const { options } = draft
  const { data, cvc } = sealData(keys, draft, before.id, now)
  const kept = touchesShortLived(before, patch) ? null : before.cvc
  // An index may be over short-lived data that has expired; a patch that does not name the indexes must not fail for it.
  const lenient = draft.type.shortLived !== null && patch['search_indexes'] === undefined
  return {
    ...before,
    containers: options.containers,
    data,
    // The lifetime restarts with a new code, not with a change of another member.
    cvc: cvc !== null && kept !== null ? { ...cvc, expiresAt: kept.expiresAt } : cvc,
    metadata: options.metadata,
    details: options.details,
    fingerprint: fingerprintOf(keys, context, draft, evaluationContext),
    // As for a new token; a caller that finds only some duplicates cannot turn it on.
    deduplicate:
      asksToDeduplicate(draft, context) &&
      (before.deduplicate || duplicateContainers(context) === null),
    indexes: indexesOf(keys, draft, evaluationContext, lenient),
    expiresAt: options.expiresAt,
    modifiedBy: context.applicationId,
    modifiedAt: now,
    revision: before.revision + 1,
  }
}
