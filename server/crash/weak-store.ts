/**
 * Stores that break one promise each, so that the harness can show that it would notice.
 */
import type { Change, Conflict } from '../src/ports/change.ts'
import type { Store } from '../src/ports/store.ts'
import { withCommit } from '../src/ports/with-commit.ts'

export const WEAKNESSES = ['early', 'torn', 'forgetful', 'partial', 'leaky'] as const
export type Weakness = (typeof WEAKNESSES)[number]

type CommitMethod = Store['commit']

/** Returns `store` with the weakness: what it does wrong is said at each function below. */
export function weakened(store: Store, weakness: Weakness): Store {
  const commit: CommitMethod = (tenantId, changes) => store.commit(tenantId, changes)
  const weak = { early, torn, forgetful, partial, leaky }[weakness]
  return withCommit(store, (tenantId, changes) => weak(commit, tenantId, changes))
}

/** Acknowledges before the commit is durable; where a caller chose an id it waits, to refuse it. */
async function early(
  commit: CommitMethod,
  tenantId: string,
  changes: readonly Change[],
): Promise<Conflict | null> {
  const committed = commit(tenantId, changes)
  if (tokensOf(changes).length === 0 || chosenIds(changes)) return await committed
  // A failure goes unreported as well.
  committed.catch(() => {})
  return null
}

/** Commits half of the tokens, then the rest. */
async function torn(
  commit: CommitMethod,
  tenantId: string,
  changes: readonly Change[],
): Promise<Conflict | null> {
  const tokens = tokensOf(changes)
  if (tokens.length < 2 || chosenIds(changes)) return await commit(tenantId, changes)
  const half = tokens.length >> 1
  const others = changes.filter((it) => it.kind !== 'insert-tokens')
  const first = await commit(tenantId, [{ kind: 'insert-tokens', tokens: tokens.slice(0, half) }])
  if (first !== null) return first
  const rest = { kind: 'insert-tokens', tokens: tokens.slice(half) } as const
  return await commit(tenantId, [rest, ...others])
}

/** Does not remember answers with what they answer. */
async function forgetful(
  commit: CommitMethod,
  tenantId: string,
  changes: readonly Change[],
): Promise<Conflict | null> {
  return await commit(
    tenantId,
    changes.filter((it) => it.kind !== 'remember-answer'),
  )
}

/** Refuses a commit, but keeps its tokens that did not conflict. */
async function partial(
  commit: CommitMethod,
  tenantId: string,
  changes: readonly Change[],
): Promise<Conflict | null> {
  const conflict = await commit(tenantId, changes)
  if (conflict?.kind === 'token-id-taken') {
    const tokens = tokensOf(changes).filter((it) => it.id !== conflict.id)
    if (tokens.length > 0) await commit(tenantId, [{ kind: 'insert-tokens', tokens }])
  }
  return conflict
}

/** Does at once what should wait for a transaction. */
async function leaky(
  commit: CommitMethod,
  tenantId: string,
  changes: readonly Change[],
): Promise<Conflict | null> {
  return await commit(
    tenantId,
    changes.filter((it) => it.kind !== 'enlist'),
  )
}

function tokensOf(changes: readonly Change[]) {
  return changes.flatMap((it) => (it.kind === 'insert-tokens' ? it.tokens : []))
}

function chosenIds(changes: readonly Change[]): boolean {
  return tokensOf(changes).some((it) => it.id !== it.internalId)
}
