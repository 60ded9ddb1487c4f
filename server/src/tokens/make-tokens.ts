/**
 * Drafts into tokens, durably: what POST /tokens and POST /tokenize have in common.
 */
import { authorize } from '../access/authorize.ts'
import { commit } from '../access/commit.ts'
import type { Caller, Transform } from '../base/access.ts'
import { idOf } from '../base/id.ts'
import type { Json } from '../base/json.ts'
import {
  ALIAS_ATTEMPTS_MAX,
  EXPRESSION_WORK_CHARS_MAX,
  MASKS_SHOWN_CHARS_MAX,
  TOKEN_WORK_CHARS_MAX,
} from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { Allowance, type Means } from '../expressions/template.ts'
import type { Answer } from '../http/endpoint.ts'
import type { TenantKeys } from '../world/keyring.ts'
import type { Random } from '../world/random.ts'
import type { Conflict, StoredToken } from '../world/store.ts'
import type { World } from '../world/world.ts'
import { aliasOf, deduplicates, fingerprintOf, indexesOf } from './derive.ts'
import type { Draft } from './draft.ts'
import { sealData, withoutShortLived } from './sealing.ts'
import { inSlices } from './slices.ts'
import { findTwins, twinViewer, type TwinView, type Twin } from './twins.ts'

/** What became of a draft: a token of its own, or the twin it had already. */
export interface Made {
  readonly draft: Draft
  readonly token: StoredToken
  /** What the caller may see of tokens it makes here. */
  readonly transform: Transform
  /** Undefined for a new token; null for a twin that the caller may not read. */
  readonly twin: TwinView | null | undefined
  /** Whether it is to be shown as readers will see it when what is short-lived is gone. */
  readonly later: boolean
  /** What its expressions are evaluated with. */
  readonly means: Means
}

export interface Rendering {
  /** Renders what became of one draft. */
  readonly reply: (made: Made, index: number) => Json
  /**
   * Puts the replies together; the answer is remembered in the same commit as the tokens. What an earlier
   * call returned may change.
   */
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
    const means = meansFor(world.random, drafts.length)
    const twins = drafts.some((draft) => deduplicates(draft, caller))
      ? await findTwins(world, caller, keys, drafts, { now, means })
      : NO_TWINS
    const tokens = new Map<number, StoredToken>()
    const replies: Json[] = []
    // What is remembered outlives a security code by far, so it is what a reader sees after its hour.
    const remembered: Json[] = []
    const view = twinViewer(caller, keys, { now, means })
    const viewLater = twinViewer(caller, keys, { now: Infinity, means })
    await inSlices(world.clock, drafts.length, (index) => {
      const draft = drafts[index]!
      const transform = transforms.get(draft.options.containers)!
      const found = twins.get(index)
      const token =
        found === undefined
          ? makeToken(caller, keys, draft, { clashes: clashes.get(draft) ?? 0, now, means })
          : typeof found === 'number'
            ? tokens.get(found)!
            : found
      if (found === undefined) tokens.set(index, token)
      const twin = found === undefined ? undefined : view(token)
      const made = { draft, token, transform, twin, means, later: false }
      const shown = reply(made, index)
      replies.push(shown)
      if (caller.replay === null) return
      const aged = { draft: withoutShortLived(draft), twin: twin && viewLater(token), later: true }
      remembered.push(token.cvc === null ? shown : reply({ ...made, ...aged }, index))
    })
    const toRemember = remembered.some((it, index) => it !== replies[index])
      ? structuredClone(answer(remembered))
      : undefined
    const done = answer(replies)
    const inserted = [...tokens.values()]
    const changes =
      inserted.length === 0 ? [] : [{ kind: 'insert-tokens', tokens: inserted } as const]
    const conflict = await commit(world, caller, changes, done, toRemember)
    if (conflict === null) return done
    await resolve(world.store, caller, conflict, { drafts, tokens, clashes })
  }
  throw new Error('Cannot make tokens: others kept making their twins first')
}

const NO_TWINS: ReadonlyMap<number, Twin> = new Map()

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

/** Bounds what all the expressions of a request do together, by the number of its tokens. */
function meansFor(random: Random, tokens: number): Means {
  const workMax = EXPRESSION_WORK_CHARS_MAX + tokens * TOKEN_WORK_CHARS_MAX
  return { random, allowance: new Allowance(workMax, MASKS_SHOWN_CHARS_MAX) }
}

interface Making {
  /** How often its alias was taken. */
  readonly clashes: number
  readonly now: number
  readonly means: Means
}

function makeToken(
  caller: Caller,
  keys: TenantKeys,
  draft: Draft,
  { clashes, now, means }: Making,
): StoredToken {
  const { type, options } = draft
  const serial = idOf(now, means.random.bytes(10))
  const id = idOfDraft(draft, serial, clashes, means)
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
    fingerprint: fingerprintOf(keys, caller, draft, means),
    deduplicate: deduplicates(draft, caller),
    indexes: indexesOf(keys, draft, means),
    expiresAt: options.expiresAt,
    createdBy: caller.applicationId,
    createdAt: now,
    modifiedBy: null,
    modifiedAt: null,
  }
}

/** An alias that keeps being taken gives way to an id of ours. */
function idOfDraft(draft: Draft, serial: string, clashes: number, means: Means): string {
  const { id } = draft.options
  if (id === null) return serial
  if (typeof id === 'string') return id
  return clashes < ALIAS_ATTEMPTS_MAX ? aliasOf(draft, id, means) : serial
}

interface Attempt {
  readonly drafts: readonly Draft[]
  /** What was made of them, by the index of the draft. */
  readonly tokens: ReadonlyMap<number, StoredToken>
  /** How often the alias of a draft was taken. */
  readonly clashes: Map<Draft, number>
}

/**
 * Makes the next attempt possible, or throws when there cannot be one.
 *
 * The store names one id that is taken, and there may be thousands: all of them count now, or a payload
 * of aliases that are taken would need an attempt for each.
 */
async function resolve(
  store: Pick<World['store'], 'tokens'>,
  { tenantId }: Caller,
  conflict: Conflict,
  { drafts, tokens, clashes }: Attempt,
): Promise<void> {
  // The twin is there now: the next look finds it.
  if (conflict.kind === 'fingerprint-taken') return
  if (conflict.kind !== 'token-id-taken') {
    throw new Error(`Cannot make tokens: the store answered ${conflict.kind}`)
  }
  const chosen = [...tokens].filter(([, { id, serial }]) => id !== serial)
  const ids = chosen.map(([, { id }]) => id)
  const stored = await store.tokens.find(tenantId, ids)
  const taken = new Set([conflict.id, ...stored.map(({ id }) => id)])
  const seen = new Set<string>()
  for (const [index, { id }] of chosen) {
    const free = !taken.has(id) && !seen.has(id)
    seen.add(id)
    if (free) continue
    const draft = drafts[index]!
    if (typeof draft.options.id === 'string') {
      throw new ServiceError('token_id_taken', { [draft.pathOf('id')]: ['It is taken.'] })
    }
    clashes.set(draft, (clashes.get(draft) ?? 0) + 1)
  }
}
