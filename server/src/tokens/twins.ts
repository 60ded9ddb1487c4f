/**
 * Deduplication: which drafts have a twin already.
 *
 * Source: interface.md, Tokens, Deduplication. Between looking and committing another request may store
 * the twin: the store refuses the commit then, and we look again.
 */
import { ask } from '../access/authorize.ts'
import type { Caller } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import type { EvaluationContext } from '../expressions/template.ts'
import type { TenantKeys } from '../world/keyring.ts'
import type { StoredToken } from '../world/stored.ts'
import type { World } from '../world/world.ts'
import { deduplicates, fingerprintOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { Reading } from './reading.ts'
import { openData } from './sealing.ts'
import { shownData } from './show.ts'
import { inSlices } from './slices.ts'

/** A stored token, or the index of an earlier draft of the same payload. */
export type Twin = StoredToken | number

/** What the caller may see of a twin's data: undefined for nothing. */
export interface TwinView {
  /** As a reader sees it. */
  readonly data: Json | undefined
  /** The same, but never more than the mask. */
  readonly masked: Json | undefined
}

/** Returns the twin of every draft that has one and wants no other of its kind. Throws what Reading throws. */
export async function findTwins(
  world: Pick<World, 'clock' | 'store'>,
  caller: Caller,
  keys: TenantKeys,
  drafts: readonly Draft[],
  {
    now,
    evaluationContext,
  }: { readonly now: number; readonly evaluationContext: EvaluationContext },
): Promise<ReadonlyMap<number, Twin>> {
  const twins = new Map<number, Twin>()
  const known = new Map<string, Twin>()
  const reading = new Reading(caller)
  await inSlices(world.clock, drafts.length, async (index) => {
    const draft = drafts[index]!
    const fingerprint = fingerprintOf(keys, caller, draft, evaluationContext)
    if (fingerprint === null) return
    const { name: type } = draft.type
    const kind = `${type} ${fingerprint}`
    const earlier = known.get(kind)
    if (!deduplicates(draft, caller)) {
      known.set(kind, earlier ?? index)
      return
    }
    // A stored twin is looked for once: found again or not, it counts for the whole payload.
    const twin = isStored(earlier) ? earlier : ((await findTwin(type, fingerprint)) ?? earlier)
    known.set(kind, twin ?? index)
    if (twin !== undefined) twins.set(index, twin)
  })
  return twins

  async function findTwin(type: string, fingerprint: string): Promise<StoredToken | undefined> {
    const { tenantId, transactionId } = caller
    const { tokens } = world.store
    const [twin] = await reading.read(async (bytesMax) => {
      const it = await tokens.findByFingerprint(
        tenantId,
        type,
        fingerprint,
        now,
        transactionId,
        bytesMax,
      )
      return it === null ? [] : [it]
    })
    return twin
  }
}

function isStored(twin: Twin | undefined): twin is StoredToken {
  return typeof twin === 'object'
}

/**
 * Returns a function that says what the caller may see of a twin at `now`: null when it may not read it.
 *
 * Thousands of drafts may have the same twin, so that it is opened once.
 */
export function twinViewer(
  caller: Caller,
  keys: TenantKeys,
  {
    now,
    evaluationContext,
  }: { readonly now: number; readonly evaluationContext: EvaluationContext },
): (token: StoredToken) => TwinView | null {
  let views: Map<StoredToken, TwinView | null> | undefined
  return (token) => {
    views ??= new Map()
    const known = views.get(token)
    if (known !== undefined) return known
    const view = viewTwin(caller, keys, token, { now, evaluationContext })
    views.set(token, view)
    return view
  }
}

function viewTwin(
  caller: Caller,
  keys: TenantKeys,
  token: StoredToken,
  {
    now,
    evaluationContext,
  }: { readonly now: number; readonly evaluationContext: EvaluationContext },
): TwinView | null {
  const grant = ask(caller, 'token:read', token)
  if (grant === null) return null
  const data = openData(keys, token, now, grant)
  const { transform } = grant
  return {
    data: shownData(token, data, transform, evaluationContext),
    masked: shownData(token, data, transform === 'reveal' ? 'mask' : transform, evaluationContext),
  }
}
