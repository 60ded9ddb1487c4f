/**
 * Drafts into tokens, durably: what POST /tokens and POST /tokenize have in common.
 */
import { authorize } from '../access/authorize.ts'
import { commit } from '../access/commit.ts'
import type { Caller, Transform } from '../base/access.ts'
import { idOf } from '../base/id.ts'
import type { Json } from '../base/json.ts'
import { ALIAS_ATTEMPTS_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Answer } from '../http/endpoint.ts'
import type { TenantKeys } from '../world/keyring.ts'
import type { Conflict, StoredToken } from '../world/store.ts'
import type { World } from '../world/world.ts'
import { aliasOf, deduplicates, fingerprintOf, indexesOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { sealData } from './sealing.ts'
import { inSlices } from './slices.ts'
import { findTwins, viewTwin, type TwinView } from './twins.ts'

/** What became of a draft: a token of its own, or the twin it had already. */
export interface Made {
  readonly draft: Draft
  readonly token: StoredToken
  /** What the caller may see of tokens it makes here. */
  readonly transform: Transform
  /** Undefined for a new token; null for a twin that the caller may not read. */
  readonly twin: TwinView | null | undefined
}

export interface Rendering {
  /** Renders what became of one draft. */
  readonly reply: (made: Made, index: number) => Json
  /** Puts the replies together; the answer is remembered in the same commit as the tokens. */
  readonly answer: (replies: readonly Json[]) => Answer
}

/**
 * Makes a token of every draft, or of none: when it resolves, all of them are on disk.
 *
 * Throws `permission_missing`, `token_id_taken`, `expression_invalid`, and what commit() throws.
 */
export async function makeTokens(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  caller: Caller,
  drafts: readonly Draft[],
  { reply, answer }: Rendering,
): Promise<Answer> {
  const transforms = authorizeAll(caller, drafts)
  const keys = await world.keyring.open(caller.tenantId)
  const clashes = new Map<Draft, number>()

  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const now = world.clock.now()
    const twins = await findTwins(world, caller, keys, drafts, now)
    const tokens = new Map<number, StoredToken>()
    const replies: Json[] = []
    await inSlices(world.clock, drafts.length, (index) => {
      const draft = drafts[index]!
      const transform = transforms.get(draft.options.containers)!
      const found = twins.get(index)
      if (found === undefined) {
        const token = makeToken(world, caller, keys, draft, clashes.get(draft) ?? 0, now)
        tokens.set(index, token)
        replies.push(reply({ draft, token, transform, twin: undefined }, index))
        return
      }
      const token = typeof found === 'number' ? tokens.get(found)! : found
      const twin = viewTwin(world, caller, keys, token, now)
      replies.push(reply({ draft, token, transform, twin }, index))
    })
    const done = answer(replies)
    const inserted = [...tokens.values()]
    const changes =
      inserted.length === 0 ? [] : [{ kind: 'insert-tokens', tokens: inserted } as const]
    const conflict = await commit(world, caller, changes, done)
    if (conflict === null) return done
    resolve(conflict, drafts, tokens, clashes)
  }
  throw new Error('Cannot make tokens: others kept making their twins first')
}

/** Each attempt loses to another request that won; so many in a row do not happen by chance. */
const ATTEMPTS_MAX = 100

/** Asks once for each distinct list of containers; returns what each lets the caller see. */
function authorizeAll(
  caller: Caller,
  drafts: readonly Draft[],
): ReadonlyMap<readonly string[], Transform> {
  const byName = new Map<string, Transform>()
  const byList = new Map<readonly string[], Transform>()
  for (const { options } of drafts) {
    const { containers } = options
    if (byList.has(containers)) continue
    const name = containers.join(' ')
    const transform = byName.get(name) ?? authorize(caller, 'token:create', containers).transform
    byName.set(name, transform)
    byList.set(containers, transform)
  }
  return byList
}

function makeToken(
  world: Pick<World, 'random'>,
  caller: Caller,
  keys: TenantKeys,
  draft: Draft,
  clashes: number,
  now: number,
): StoredToken {
  const { type, options } = draft
  const serial = idOf(now, world.random.bytes(10))
  const id = idOfDraft(draft, serial, clashes, world)
  const { data, cvc } = sealData(keys, draft, id, now)
  return {
    id,
    serial,
    type: type.name,
    containers: options.containers,
    data,
    cvc,
    metadata: options.metadata,
    details: options.details,
    fingerprint: fingerprintOf(keys, caller, draft, world.random),
    deduplicate: deduplicates(draft, caller),
    indexes: indexesOf(keys, draft, world.random),
    expiresAt: options.expiresAt,
    createdBy: caller.applicationId,
    createdAt: now,
    modifiedBy: null,
    modifiedAt: null,
  }
}

/** An alias that keeps being taken gives way to an id of ours. */
function idOfDraft(
  draft: Draft,
  serial: string,
  clashes: number,
  { random }: Pick<World, 'random'>,
): string {
  const { id } = draft.options
  if (id === null) return serial
  if (typeof id === 'string') return id
  return clashes < ALIAS_ATTEMPTS_MAX ? aliasOf(draft, id, random) : serial
}

/** Makes the next attempt possible, or throws when there cannot be one. */
function resolve(
  conflict: Conflict,
  drafts: readonly Draft[],
  tokens: ReadonlyMap<number, StoredToken>,
  clashes: Map<Draft, number>,
): void {
  // The twin is there now: the next look finds it.
  if (conflict.kind === 'fingerprint-taken') return
  if (conflict.kind !== 'token-id-taken') {
    throw new Error(`Cannot make tokens: the store answered ${conflict.kind}`)
  }
  for (const [index, token] of tokens) {
    if (token.id !== conflict.id) continue
    const draft = drafts[index]!
    if (typeof draft.options.id === 'string') {
      throw new ServiceError('token_id_taken', { [draft.pathOf('id')]: ['It is taken.'] })
    }
    clashes.set(draft, (clashes.get(draft) ?? 0) + 1)
  }
}
