/**
 * Deduplication: finds the drafts that already have a duplicate.
 *
 * Another request may store the duplicate between the lookup and the commit. The store then refuses the commit, and the
 * lookup is repeated. Source: interface.md, Tokens, Deduplication.
 */
import { tryAuthorize } from '../access/authorize.ts'
import type { RequestContext } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import type { EvaluationContext } from '../expressions/template.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { deduplicates, fingerprintOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { ReadBudget } from './read-budget.ts'
import { READ_ATTEMPTS_MAX, showsData } from './read-granted.ts'
import { openData } from './sealing.ts'
import { shownData } from './show.ts'
import { inChunks } from './chunked-work.ts'

/** A stored token, with the data the caller may read of it, or the index of an earlier draft of the same payload. */
export type Duplicate = FoundToken | number

/** The part of a duplicate's data the caller may see; undefined for nothing. */
export interface DuplicateView {
  /** As readers see it. */
  readonly data: Json | undefined
  /** The same, but at most the mask. */
  readonly masked: Json | undefined
}

/** Returns the duplicate of each draft that has one and asks for deduplication. Throws what ReadBudget throws. */
export async function findDuplicates(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  keys: TenantKeys,
  drafts: readonly Draft[],
  {
    now,
    evaluationContext,
  }: { readonly now: number; readonly evaluationContext: EvaluationContext },
): Promise<ReadonlyMap<number, Duplicate>> {
  const duplicates = new Map<number, Duplicate>()
  const known = new Map<string, Duplicate>()
  const readBudget = new ReadBudget(context)
  await inChunks(world.clock, drafts.length, async (index) => {
    const draft = drafts[index]!
    const fingerprint = fingerprintOf(keys, context, draft, evaluationContext)
    if (fingerprint === null) return
    const { name: type } = draft.type
    const kind = `${type} ${fingerprint}`
    const earlier = known.get(kind)
    if (!deduplicates(draft, context)) {
      known.set(kind, earlier ?? index)
      return
    }
    // A stored duplicate is looked up once per payload, found or not.
    const duplicate = isStored(earlier)
      ? earlier
      : ((await readDuplicate(world, context, readBudget, { type, fingerprint, now })) ?? earlier)
    known.set(kind, duplicate ?? index)
    if (duplicate !== undefined) duplicates.set(index, duplicate)
  })
  return duplicates
}

/**
 * Returns the oldest live token of this type and fingerprint, null if there is none. It has its data only if the caller may read
 * any of it. Throws what ReadBudget throws.
 */
export async function readDuplicate(
  world: Pick<World, 'store'>,
  context: RequestContext,
  readBudget: ReadBudget,
  {
    type,
    fingerprint,
    now,
  }: { readonly type: string; readonly fingerprint: string; readonly now: number },
): Promise<FoundToken | null> {
  const { tenantId, transactionId, decisions } = context
  for (let attempt = 1; attempt <= READ_ATTEMPTS_MAX; attempt++) {
    const first = decisions.length
    const token = await world.store.tokens.findByFingerprint(
      tenantId,
      type,
      fingerprint,
      now,
      transactionId,
    )
    if (token === null) return null
    const grant = tryAuthorize(context, 'token:read', token)
    if (grant === null || !showsData(token, grant)) return { ...token, data: null }
    const read = await readBudget.read(world, context, [{ token, wanted: true }])
    if (read !== null) return read[0]!
    decisions.length = first
  }
  throw new Error('Cannot read a duplicate: others kept changing it first')
}

function isStored(duplicate: Duplicate | undefined): duplicate is FoundToken {
  return typeof duplicate === 'object'
}

/**
 * Returns a function that gives the caller's view of a duplicate at `now`: null if it may not read it.
 *
 * Caches the view, because thousands of drafts may share one duplicate.
 */
export function duplicateViewer(
  context: RequestContext,
  keys: TenantKeys,
  {
    now,
    evaluationContext,
  }: { readonly now: number; readonly evaluationContext: EvaluationContext },
): (token: FoundToken) => DuplicateView | null {
  let views: Map<FoundToken, DuplicateView | null> | undefined
  return (token) => {
    views ??= new Map()
    const known = views.get(token)
    if (known !== undefined) return known
    const view = viewDuplicate(context, keys, token, { now, evaluationContext })
    views.set(token, view)
    return view
  }
}

function viewDuplicate(
  context: RequestContext,
  keys: TenantKeys,
  token: FoundToken,
  {
    now,
    evaluationContext,
  }: { readonly now: number; readonly evaluationContext: EvaluationContext },
): DuplicateView | null {
  const grant = tryAuthorize(context, 'token:read', token)
  if (grant === null) return null
  if (!showsData(token, grant)) return { data: undefined, masked: undefined }
  const data = openData(keys, token, now, grant)
  const { transform } = grant
  return {
    data: shownData(token, data, transform, evaluationContext),
    masked: shownData(token, data, transform === 'reveal' ? 'mask' : transform, evaluationContext),
  }
}
