/** Turns drafts into durable tokens, for POST /tokens and POST /tokenize. */
import { authorize } from '../access/authorize.ts'
import type { Transform } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Conflict } from '../ports/change.ts'
import type { World } from '../ports/world.ts'
import { commit } from '../request/commit.ts'
import type { RequestContext } from '../request/context.ts'
import type { Answer } from '../request/response.ts'
import { buildTokens, type BuiltBatch, type DraftBatch } from './build-tokens.ts'
import type { Draft } from './draft.ts'
import { renderAnswers, type TokenRenderer } from './render-tokens.ts'

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
  // All of this is mostly known at once, and an unneeded await would cost as much as some of the work.
  const opening = world.keyring.open(context.tenantId)
  const keys = opening instanceof Promise ? await opening : opening
  let batch: DraftBatch = { context, keys, drafts, clashes: new Map() }
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const building = buildTokens(world, batch)
    const built = building instanceof Promise ? await building : building
    const rendering = renderAnswers(world, batch, built, transforms, renderer)
    const { answer, replayAnswer } = rendering instanceof Promise ? await rendering : rendering
    const { tokens } = built
    const changes = tokens.length === 0 ? [] : [{ kind: 'insert-tokens', tokens } as const]
    const conflict = await commit(world, context, changes, answer, replayAnswer)
    if (conflict === null) return answer
    batch = { ...batch, clashes: await clashesAfter(world.store, batch, conflict, built) }
  }
  throw new Error('Cannot make tokens: others kept making their duplicates first')
}

/** Each failed attempt lost to another request that succeeded; this many in a row do not happen by chance. */
const ATTEMPTS_MAX = 100

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

/**
 * Returns how often the alias of each draft was taken, for the next attempt, or throws if there cannot be one.
 *
 * The store reports one taken id at a time, but there may be thousands. All are looked up here: otherwise a payload of
 * taken aliases would need one attempt each. Of several drafts with the same id one keeps it: the first, or the one whose
 * caller chose it.
 */
async function clashesAfter(
  store: Pick<World['store'], 'tokens'>,
  batch: DraftBatch,
  conflict: Conflict,
  { tokens, duplicates }: BuiltBatch,
): Promise<ReadonlyMap<Draft, number>> {
  // The duplicate is stored by now, so the next lookup finds it.
  if (conflict.kind === 'fingerprint-taken') return batch.clashes
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
  return clashes
}
