/**
 * Deduplication: which drafts have a twin already.
 *
 * Source: interface.md, Tokens, Deduplication. Between looking and committing another request may store
 * the twin: the store refuses the commit then, and we look again.
 */
import { ask } from '../access/authorize.ts'
import type { Caller } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import type { TenantKeys } from '../world/keyring.ts'
import type { StoredToken } from '../world/store.ts'
import type { World } from '../world/world.ts'
import { deduplicates, fingerprintOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { openData } from './sealing.ts'
import { shownData } from './show.ts'
import { inSlices } from './slices.ts'

/** A stored token, or the index of an earlier draft of the same payload. */
export type Twin = StoredToken | number

export interface TwinView {
  readonly data: Json | undefined
}

/** Returns the twin of every draft that has one and wants no other of its kind. */
export async function findTwins(
  world: Pick<World, 'clock' | 'random' | 'store'>,
  caller: Caller,
  keys: TenantKeys,
  drafts: readonly Draft[],
  now: number,
): Promise<ReadonlyMap<number, Twin>> {
  const twins = new Map<number, Twin>()
  if (!drafts.some((draft) => deduplicates(draft, caller))) return twins
  const first = new Map<string, number>()
  await inSlices(world.clock, drafts.length, async (index) => {
    const draft = drafts[index]!
    const fingerprint = fingerprintOf(keys, caller, draft, world.random)
    if (fingerprint === null) return
    const kind = `${draft.type.name} ${fingerprint}`
    const earlier = first.get(kind)
    first.set(kind, earlier ?? index)
    if (!deduplicates(draft, caller)) return
    const stored = await world.store.tokens.findByFingerprint(
      caller.tenantId,
      draft.type.name,
      fingerprint,
      now,
    )
    const twin = stored ?? earlier
    if (twin !== undefined) twins.set(index, twin)
  })
  return twins
}

/** Returns what the caller may see of a twin, or null when it may not read it. */
export function viewTwin(
  world: Pick<World, 'random'>,
  caller: Caller,
  keys: TenantKeys,
  token: StoredToken,
  now: number,
): TwinView | null {
  const grant = ask(caller, 'token:read', token.containers)
  if (grant === null) return null
  const data = openData(keys, token, now)
  return { data: shownData(token, data, grant.transform, world.random) }
}
