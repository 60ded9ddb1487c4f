/** Turns drafts into durable tokens, for POST /tokens and POST /tokenize. */
import { authorize } from '../access/authorize.ts'
import { commit } from '../request/commit.ts'
import { keepUntil } from '../request/idempotency.ts'
import type { Transform } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import { ID_RANDOM_BYTES, idOf, sortRandom } from '../base/id.ts'
import type { Json } from '../base/json.ts'
import {
  ALIAS_ATTEMPTS_MAX,
  EXPRESSION_WORK_CHARS_MAX,
  MASKS_SHOWN_CHARS_MAX,
  MASKS_SHOWN_PUBLIC_CHARS_MAX,
  TOKEN_WORK_CHARS_MAX,
} from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { CostBudget, type EvaluationContext } from '../expressions/template.ts'
import type { Answer } from '../request/response.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { Random } from '../ports/random.ts'
import type { Conflict } from '../ports/change.ts'
import type { FoundToken, StoredToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { aliasOf, asksToDeduplicate, fingerprintOf, indexesOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { sealData, withoutShortLived } from './sealing.ts'
import { inChunks } from './chunked-work.ts'
import {
  duplicateContainers,
  duplicateViewer,
  findDuplicates,
  type Duplicate,
  type DuplicateGrants,
  type DuplicateView,
} from './deduplication.ts'

/** The result of a draft: a new token, or its existing duplicate. */
export interface BuiltToken {
  readonly draft: Draft
  readonly token: FoundToken
  /** The transform for tokens the caller creates here. */
  readonly transform: Transform
  /** Undefined for a new token; null for a duplicate the caller may not read. */
  readonly duplicate: DuplicateView | null | undefined
  /** Whether to render it as readers see it once its security code has expired. */
  readonly shortLivedExpired: boolean
  /** The evaluation context of its expressions. */
  readonly evaluationContext: EvaluationContext
}

export interface TokenRenderer {
  /** Renders the result of one draft. */
  readonly renderBuilt: (built: BuiltToken, index: number) => Json
  /**
   * Combines the rendered drafts into the answer, which is stored for replay in the same commit as the tokens. May modify
   * what an earlier call returned.
   */
  readonly answer: (rendered: readonly Json[]) => Answer
}

/**
 * Creates a token for every draft, or for none. Once it resolves, all of them are on disk.
 *
 * Throws `permission_missing`, `token_id_taken`, `expression_invalid`, and what findDuplicates() and commit() throw.
 */
export async function makeTokens(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  drafts: readonly Draft[],
  renderer: TokenRenderer,
): Promise<Answer> {
  const transforms = authorizeAll(context, drafts)
  const opened = world.keyring.open(context.tenantId)
  // Keys are usually cached, and an unneeded await would cost as much as some of the work.
  const keys = opened instanceof Promise ? await opened : opened
  const batch: DraftBatch = { context, keys, drafts, transforms, clashes: NO_CLASHES }
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const building = buildAttempt(world, batch, renderer)
    const result = building instanceof Promise ? await building : building
    const { tokens, answer, replayAnswer } = result
    const changes = tokens.length === 0 ? [] : [{ kind: 'insert-tokens', tokens } as const]
    const conflict = await commit(world, context, changes, answer, replayAnswer)
    if (conflict === null) return answer
    await resolveConflict(world.store, batch, conflict, result)
  }
  throw new Error('Cannot make tokens: others kept making their duplicates first')
}

/** Each failed attempt lost to another request that succeeded; this many in a row do not happen by chance. */
const ATTEMPTS_MAX = 100

/** The drafts of one request, and what all attempts to create their tokens share. */
interface DraftBatch {
  readonly context: RequestContext
  readonly keys: TenantKeys
  readonly drafts: readonly Draft[]
  /** The transform of each draft, by index. */
  readonly transforms: readonly Transform[]
  /** How often the alias of each draft was already taken. */
  clashes: ReadonlyMap<Draft, number>
}

const NO_CLASHES: ReadonlyMap<Draft, number> = new Map()

/** The tokens and the answer that one attempt would commit. */
interface AttemptResult {
  /** The new tokens, in the order of their drafts. */
  readonly tokens: readonly StoredToken[]
  /** Existing duplicates by draft index; those drafts create no token. */
  readonly duplicates: ReadonlyMap<number, Duplicate>
  readonly answer: Answer
  /** The answer to a replay of the request, if it shows less. */
  readonly replayAnswer: Answer | undefined
}

/** Synchronous unless duplicates must be looked up or there are many drafts. */
function buildAttempt(
  world: Pick<World, 'clock' | 'random' | 'store'>,
  batch: DraftBatch,
  renderer: TokenRenderer,
): AttemptResult | Promise<AttemptResult> {
  const { context, keys, drafts } = batch
  const now = world.clock.now()
  const evaluationContext = evaluationContextFor(world.random, context, drafts.length)
  const grants: DuplicateGrants = new Map()
  if (!drafts.some((draft) => asksToDeduplicate(draft, context))) {
    const attempt = { now, evaluationContext, grants, checksDuplicates: false }
    return buildAndRender(world, batch, renderer, attempt, NO_DUPLICATES)
  }
  const containers = duplicateContainers(context)
  const attempt = { now, evaluationContext, grants, checksDuplicates: containers === null }
  const search = { context, containers, grants, now }
  return findDuplicates(world, search, keys, drafts, evaluationContext).then((duplicates) =>
    buildAndRender(world, batch, renderer, attempt, duplicates),
  )
}

/** Shared by everything one attempt builds. */
interface Attempt {
  readonly now: number
  readonly evaluationContext: EvaluationContext
  readonly grants: DuplicateGrants
  /**
   * Whether the store refuses a token that has a duplicate by now. Not for callers that find only some duplicates: how the store
   * treats their tokens, now and later, must not depend on the others.
   */
  readonly checksDuplicates: boolean
}

function buildAndRender(
  world: Pick<World, 'clock' | 'random'>,
  { context, keys, drafts, transforms, clashes }: DraftBatch,
  { renderBuilt, answer }: TokenRenderer,
  attempt: Attempt,
  duplicates: ReadonlyMap<number, Duplicate>,
): AttemptResult | Promise<AttemptResult> {
  const { now, evaluationContext, grants, checksDuplicates } = attempt
  const view = duplicateViewer({ context, grants }, keys, attempt)
  const later = { now: Infinity, evaluationContext }
  const viewLater = duplicateViewer({ context, grants }, keys, later)
  const entropy = world.random.bytes(drafts.length * ID_RANDOM_BYTES)
  sortRandom(entropy)
  // Indexed by draft, as `rendered` is: a duplicate may be an earlier draft of the same payload.
  const built = Array<FoundToken>(drafts.length)
  const tokens: StoredToken[] = []
  const rendered = Array<Json>(drafts.length)
  // The answer to a replay outlives a security code by far, so it holds what readers see after the code has expired.
  const renderedForReplay: Json[] = []
  let replayShowsLess = false

  const building = inChunks(world.clock, drafts.length, buildAndRenderNext)
  return building === undefined ? result() : building.then(result)

  function buildAndRenderNext(index: number): void {
    const draft = drafts[index]!
    const found = duplicates.get(index)
    let token: FoundToken
    if (found === undefined) {
      const internalId = idOf(now, entropy, index * ID_RANDOM_BYTES)
      const created = buildToken(context, keys, draft, {
        internalId,
        clashes: clashes.get(draft) ?? 0,
        now,
        evaluationContext,
        checksDuplicates,
      })
      tokens.push(created)
      token = created
    } else token = typeof found === 'number' ? built[found]! : found
    built[index] = token
    const duplicate = found === undefined ? undefined : view(token)
    const it = {
      draft,
      token,
      transform: transforms[index]!,
      duplicate,
      evaluationContext,
      shortLivedExpired: false,
    }
    // One that the caller may not read shows nothing, and must not show when it expires.
    if (duplicate !== null) keepUntil(context, token.expiresAt)
    const renderedToken = renderBuilt(it, index)
    rendered[index] = renderedToken
    if (context.idempotency === null) return
    replayShowsLess ||= token.cvc !== null
    const aged = {
      draft: withoutShortLived(draft),
      duplicate: duplicate && viewLater(token),
      shortLivedExpired: true,
    }
    renderedForReplay.push(
      token.cvc === null ? renderedToken : renderBuilt({ ...it, ...aged }, index),
    )
  }

  function result(): AttemptResult {
    const replayAnswer = replayShowsLess ? structuredClone(answer(renderedForReplay)) : undefined
    return { tokens, duplicates, answer: answer(rendered), replayAnswer }
  }
}

const NO_DUPLICATES: ReadonlyMap<number, Duplicate> = new Map()

/** Authorizes once per distinct list of containers; returns what the caller may see of each draft. */
function authorizeAll(context: RequestContext, drafts: readonly Draft[]): readonly Transform[] {
  let answers: Map<string, Transform> | undefined
  let last: readonly string[] | undefined
  let transform: Transform = 'redact'
  return drafts.map(({ options: { containers } }) => {
    // Most drafts name no containers and share their type's list.
    if (containers === last) return transform
    if (last === undefined) transform = authorize(context, 'token:create', containers).transform
    else {
      answers ??= new Map([[last.join(' '), transform]])
      const name = containers.join(' ')
      transform = answers.get(name) ?? authorize(context, 'token:create', containers).transform
      answers.set(name, transform)
    }
    last = containers
    return transform
  })
}

/** Bounds the total work of a request's expressions by its number of tokens. */
export function evaluationContextFor(
  random: Random,
  { type }: RequestContext,
  tokens: number,
): EvaluationContext {
  const workMax = EXPRESSION_WORK_CHARS_MAX + tokens * TOKEN_WORK_CHARS_MAX
  const shownMax = type === 'public' ? MASKS_SHOWN_PUBLIC_CHARS_MAX : MASKS_SHOWN_CHARS_MAX
  return { random, costBudget: new CostBudget(workMax, shownMax) }
}

interface BuildOptions {
  readonly internalId: string
  /** How often its alias was taken. */
  readonly clashes: number
  readonly now: number
  readonly evaluationContext: EvaluationContext
  readonly checksDuplicates: boolean
}

function buildToken(
  context: RequestContext,
  keys: TenantKeys,
  draft: Draft,
  { internalId, clashes, now, evaluationContext, checksDuplicates }: BuildOptions,
): StoredToken {
  const { type, options } = draft
  const id = idOfDraft(draft, internalId, clashes, evaluationContext)
  const { data, cvc } = sealData(keys, draft, id, now)
  return {
    id,
    internalId,
    type: type.name,
    containers: options.containers,
    data,
    cvc,
    metadata: options.metadata,
    details: options.details,
    fingerprint: fingerprintOf(keys, context, draft, evaluationContext),
    deduplicate: checksDuplicates && asksToDeduplicate(draft, context),
    indexes: indexesOf(keys, draft, evaluationContext),
    expiresAt: options.expiresAt,
    createdBy: context.applicationId,
    createdAt: now,
    modifiedBy: null,
    modifiedAt: null,
    revision: 0,
    uncommitted: false,
  }
}

/** An alias that keeps colliding is replaced by a generated id. */
function idOfDraft(
  draft: Draft,
  internalId: string,
  clashes: number,
  evaluationContext: EvaluationContext,
): string {
  const { id } = draft.options
  if (id === null) return internalId
  if (typeof id === 'string') return id
  return clashes < ALIAS_ATTEMPTS_MAX ? aliasOf(draft, id, evaluationContext) : internalId
}

/**
 * Prepares the next attempt, or throws if there cannot be one.
 *
 * The store reports one taken id at a time, but there may be thousands. All are looked up here: otherwise a payload of
 * taken aliases would need one attempt each. Of several drafts with the same id one keeps it: the first, or the one whose
 * caller chose it.
 */
async function resolveConflict(
  store: Pick<World['store'], 'tokens'>,
  batch: DraftBatch,
  conflict: Conflict,
  { tokens, duplicates }: AttemptResult,
): Promise<void> {
  // The duplicate is stored by now, so the next lookup finds it.
  if (conflict.kind === 'fingerprint-taken') return
  if (conflict.kind !== 'token-id-taken') {
    throw new Error(`Cannot make tokens: the store answered ${conflict.kind}`)
  }
  const { context, drafts } = batch
  const clashes = new Map(batch.clashes)
  const sources = drafts.filter((_, index) => !duplicates.has(index))
  const chosen = tokens.flatMap(({ id, internalId }, at) =>
    id === internalId ? [] : [{ id, draft: sources[at]! }],
  )
  const ids = chosen.map(({ id }) => id)
  const taken = new Set(await store.tokens.known(context.tenantId, ids, context.transactionId))
  // The id may belong to a token the caller cannot see, unless the payload itself contains it twice.
  if (ids.indexOf(conflict.id) === ids.lastIndexOf(conflict.id)) taken.add(conflict.id)
  const byChoice = chosen.filter(({ draft }) => typeof draft.options.id === 'string')
  for (const { id, draft } of new Set([...byChoice, ...chosen])) {
    const free = !taken.has(id)
    taken.add(id)
    if (free) continue
    if (typeof draft.options.id === 'string') {
      throw new ServiceError('token_id_taken', { [draft.pathOf('id')]: ['It is taken.'] })
    }
    clashes.set(draft, (clashes.get(draft) ?? 0) + 1)
  }
  batch.clashes = clashes
}
