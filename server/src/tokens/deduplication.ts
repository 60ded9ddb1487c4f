/**
 * Deduplication: finds the drafts that already have a duplicate.
 *
 * It must not tell a caller which values exist, so a caller finds only duplicates in the containers that duplicateContainers()
 * returns, and otherwise gets a token of its own. Every duplicate that is found, and every one that is withheld, is recorded at
 * the look-up: whatever becomes of the request or its transaction. Decision 0076.
 *
 * Another request may store the duplicate between the lookup and the commit. The store then refuses the commit, and the
 * lookup is repeated. Source: interface.md, Tokens, Deduplication.
 */
import {
  authorizeDuplicate,
  containersGranted,
  recordWithheldDuplicate,
  type Grant,
} from '../access/authorize.ts'
import { covers } from '../access/container.ts'
import type { Principal } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import type { EvaluationContext } from '../expressions/template.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { asksToDeduplicate, fingerprintOf } from './derive.ts'
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

/**
 * Returns the containers at and below which the caller finds duplicates, null for everywhere: for public applications none or
 * all, as the tenant's settings say, and for all others those that they may read, unless the settings allow more.
 *
 * Like lists, rules with conditions beyond the container count for nothing.
 */
export function duplicateContainers(principal: Principal): readonly string[] | null {
  const { type, settings } = principal
  if (type === 'public') return settings.deduplicatePublic ? null : []
  if (type !== 'session' && settings.deduplicateUnreadable) return null
  const readable = containersGranted(principal, 'token:read')
  return readable.includes('/') ? null : readable
}

/** The caller's grants to read the duplicates that are recorded as found; null where it may not read one. */
export type DuplicateGrants = Map<FoundToken, Grant | null>

/** Shared by the look-ups of a request. */
export interface DuplicateSearch {
  readonly context: RequestContext
  /** Of duplicateContainers(). */
  readonly containers: readonly string[] | null
  readonly grants: DuplicateGrants
  readonly now: number
}

/**
 * Returns the oldest duplicate that the caller may find, recorded as found, or null. It has its data only if the caller may read
 * any of it. If there is a duplicate that the caller may not find, that is recorded as refused: the answer says nothing about it.
 *
 * Throws what ReadBudget throws.
 */
export async function findDuplicate(
  { store }: Pick<World, 'store'>,
  { context, containers, grants, now }: DuplicateSearch,
  { type, fingerprint }: { readonly type: string; readonly fingerprint: string },
  readBudget: ReadBudget,
): Promise<FoundToken | null> {
  const { tenantId, transactionId, decisions } = context
  const { tokens } = store
  if (containers?.length !== 0) {
    const found = await readFound()
    if (found !== null) return found
  }
  if (containers === null) return null
  const withheld = await tokens.knownByFingerprint(tenantId, type, fingerprint, now, transactionId)
  if (withheld !== null) recordWithheldDuplicate(context, withheld)
  return null

  async function readFound(): Promise<FoundToken | null> {
    for (let attempt = 1; attempt <= READ_ATTEMPTS_MAX; attempt++) {
      const first = decisions.length
      const token = await tokens.findByFingerprint(
        tenantId,
        type,
        fingerprint,
        now,
        transactionId,
        containers ?? undefined,
      )
      if (token === null) return null
      const grant = authorizeDuplicate(context, token)
      const wanted = grant !== null && showsData(token, grant)
      const it = { token: wanted ? token : { ...token, data: null }, wanted }
      const read = await readBudget.read({ store }, context, [it])
      if (read !== null) {
        grants.set(read[0]!, grant)
        return read[0]!
      }
      // The answer says nothing about what was found before the change.
      decisions.length = first
    }
    throw new Error('Cannot read a duplicate: others kept changing it first')
  }
}

/** Returns the duplicate of each draft that has one and asks for deduplication. Throws what ReadBudget throws. */
export async function findDuplicates(
  world: Pick<World, 'clock' | 'store'>,
  search: DuplicateSearch,
  keys: TenantKeys,
  drafts: readonly Draft[],
  evaluationContext: EvaluationContext,
): Promise<ReadonlyMap<number, Duplicate>> {
  const { context, containers } = search
  const duplicates = new Map<number, Duplicate>()
  /** Stored duplicates by kind; null where there is none to be found. Each is looked up once per payload. */
  const stored = new Map<string, FoundToken | null>()
  /** The first draft of each kind that is made a token, and that the caller may find. */
  const earlier = new Map<string, number>()
  const readBudget = new ReadBudget(context)
  await inChunks(world.clock, drafts.length, async (index) => {
    const draft = drafts[index]!
    const fingerprint = fingerprintOf(keys, context, draft, evaluationContext)
    if (fingerprint === null) return
    const { name: type } = draft.type
    const kind = `${type} ${fingerprint}`
    if (asksToDeduplicate(draft, context)) {
      let found = stored.get(kind)
      if (found === undefined) {
        found = await findDuplicate(world, search, { type, fingerprint }, readBudget)
        stored.set(kind, found)
      }
      const duplicate = found ?? earlier.get(kind)
      if (duplicate !== undefined) {
        duplicates.set(index, duplicate)
        return
      }
    }
    if (!earlier.has(kind) && isIn(draft, containers)) earlier.set(kind, index)
  })
  return duplicates
}

function isIn({ options }: Draft, paths: readonly string[] | null): boolean {
  return paths?.some((path) => options.containers.some((it) => covers(path, it))) ?? true
}

/**
 * Returns a function that gives the caller's view of a duplicate at `now`: null if it may not read it. Records a duplicate that is
 * an earlier draft of the payload as found.
 *
 * Caches the view, because thousands of drafts may share one duplicate.
 */
export function duplicateViewer(
  { context, grants }: Pick<DuplicateSearch, 'context' | 'grants'>,
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
    const grant = grantOf(token)
    const view = grant === null ? null : viewDuplicate(token, grant)
    views.set(token, view)
    return view
  }

  function grantOf(token: FoundToken): Grant | null {
    const known = grants.get(token)
    if (known !== undefined) return known
    const grant = authorizeDuplicate(context, token)
    grants.set(token, grant)
    return grant
  }

  function viewDuplicate(token: FoundToken, grant: Grant): DuplicateView {
    if (!showsData(token, grant)) return { data: undefined, masked: undefined }
    const data = openData(keys, token, now, grant)
    const { transform } = grant
    const atMost = transform === 'reveal' ? 'mask' : transform
    return {
      data: shownData(token, data, transform, evaluationContext),
      masked: shownData(token, data, atMost, evaluationContext),
    }
  }
}
