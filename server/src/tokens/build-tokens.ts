/** Builds tokens from drafts, or finds their duplicates: everything but their rendering and their commit. */
import { ID_RANDOM_BYTES, idOf, sortRandom } from '../base/id.ts'
import {
  ALIAS_ATTEMPTS_MAX,
  EXPRESSION_WORK_CHARS_MAX,
  MASKS_SHOWN_CHARS_MAX,
  MASKS_SHOWN_PUBLIC_CHARS_MAX,
  TOKEN_WORK_CHARS_MAX,
} from '../base/limits.ts'
import { CostBudget, type EvaluationContext } from '../expressions/template.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { Random } from '../ports/random.ts'
import type { FoundToken, StoredToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import type { RequestContext } from '../request/context.ts'
import { inChunks } from './chunked-work.ts'
import {
  duplicateContainers,
  findDuplicates,
  type Duplicate,
  type DuplicateGrants,
} from './deduplication.ts'
import { aliasOf, asksToDeduplicate, fingerprintOf, indexesOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { sealData } from './sealing.ts'

/** The drafts of one request, and what is needed to build their tokens. */
export interface DraftBatch {
  readonly context: RequestContext
  readonly keys: TenantKeys
  readonly drafts: readonly Draft[]
  /** How often the alias of each draft was already taken. */
  readonly clashes: ReadonlyMap<Draft, number>
}

/** What one attempt to create the tokens of a batch would commit, and what its rendering needs. */
export interface BuiltBatch {
  /** By draft index: its new token, or its duplicate. */
  readonly found: readonly FoundToken[]
  /** Existing duplicates by draft index; those drafts create no token. */
  readonly duplicates: ReadonlyMap<number, Duplicate>
  /** The new tokens, in the order of their drafts. */
  readonly tokens: readonly StoredToken[]
  readonly attempt: Attempt
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

/** Synchronous unless duplicates must be looked up or there are many drafts. Throws what findDuplicates() throws. */
export function buildTokens(
  world: Pick<World, 'clock' | 'random' | 'store'>,
  batch: DraftBatch,
): BuiltBatch | Promise<BuiltBatch> {
  const { context, keys, drafts } = batch
  const now = world.clock.now()
  const evaluationContext = evaluationContextFor(world.random, context, drafts.length)
  const grants: DuplicateGrants = new Map()
  if (!drafts.some((draft) => asksToDeduplicate(draft, context))) {
    const attempt = { now, evaluationContext, grants, checksDuplicates: false }
    return buildBatch(world, batch, attempt, NO_DUPLICATES)
  }
  const containers = duplicateContainers(context)
  const attempt = { now, evaluationContext, grants, checksDuplicates: containers === null }
  const search = { context, containers, grants, now }
  return findDuplicates(world, search, keys, drafts, evaluationContext).then((duplicates) =>
    buildBatch(world, batch, attempt, duplicates),
  )
}

const NO_DUPLICATES: ReadonlyMap<number, Duplicate> = new Map()

function buildBatch(
  world: Pick<World, 'clock' | 'random'>,
  batch: DraftBatch,
  attempt: Attempt,
  duplicates: ReadonlyMap<number, Duplicate>,
): BuiltBatch | Promise<BuiltBatch> {
  const { drafts } = batch
  const entropy = world.random.bytes(drafts.length * ID_RANDOM_BYTES)
  sortRandom(entropy)
  const tokens: StoredToken[] = []
  // By draft: a duplicate may be an earlier draft of the same payload.
  const found = Array<FoundToken>(drafts.length)
  const built = { found, duplicates, tokens, attempt }
  const building = inChunks(world.clock, drafts.length, (index) => {
    const duplicate = duplicates.get(index)
    if (duplicate !== undefined) {
      found[index] = typeof duplicate === 'number' ? found[duplicate]! : duplicate
      return
    }
    const internalId = idOf(attempt.now, entropy, index * ID_RANDOM_BYTES)
    const token = buildToken(batch, drafts[index]!, internalId, attempt)
    tokens.push(token)
    found[index] = token
  })
  return building === undefined ? built : building.then(() => built)
}

function buildToken(
  { context, keys, clashes }: DraftBatch,
  draft: Draft,
  internalId: string,
  { now, evaluationContext, checksDuplicates }: Attempt,
): StoredToken {
  const { type, options } = draft
  const id = idOfDraft(draft, internalId, clashes.get(draft) ?? 0, evaluationContext)
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
