import { retiredKeyError } from '../../../ports/retired-keys.ts'
import type { Change, Conflict } from '../../../ports/change.ts'
import { isSameTip, rememberedTip, type RememberedTip } from '../../../ports/remembered-tip.ts'
import { allOf } from './all-of.ts'
import { applyChange } from './changes.ts'
import { lockTenants } from './lock-tenants.ts'
import { insertTogether, insertUnopposed, isLong, isPlain, isUnopposed } from './plain-commits.ts'
import { PostgresAuditWriter } from './audit-writer.ts'
import type { PostgresRow } from './rows.ts'
import { troubleOf, type Session } from './session.ts'
import { compareTips, tipOf, type TipComparison } from './tip-comparison.ts'
import type { RememberedTips, TipMemory } from './tip-memory.ts'
import { PostgresTokenTally } from './token-tally.ts'
import { newUnitOfWork } from './unit-of-work.ts'

export interface Commit {
  readonly tenantId: string
  readonly changes: readonly Change[]
}

/** Outcome of a commit: null when made, the conflict, or an error of its own. */
export type CommitOutcome = null | Conflict | Error

/** State shared by the commits of a batch, written at its end. */
interface Ending {
  readonly tips: LockedChainTips
  readonly tally: PostgresTokenTally
  readonly auditWriter: PostgresAuditWriter
  /** The tips that were remembered before the chain tips were locked. */
  readonly seen: RememberedTips
  /** Those of them that are not the locked ones: another server has written, or the database was put back. */
  readonly moved: RememberedTips
  /** Whether an earlier commit left a savepoint. */
  saved: boolean
}

interface BatchEnd {
  readonly tips: TipMemory
  /** Makes the transaction durable. */
  readonly commit: () => Promise<void>
}

/**
 * Runs a batch of commits in one transaction, each commit atomic, and ends it with `commit`. Resolves with an outcome
 * per commit.
 *
 * First come tokens that cannot conflict with anything. Then the tenants are locked, in a fixed order, which excludes
 * other writers for them. Plain commits, which almost never conflict, go together, with one statement per table; each
 * of the others has a savepoint. If a plain commit does conflict, everything is rolled back and run again with
 * savepoints.
 *
 * Compares the locked chain tips with those that `tips` remembers, and remembers the new ones once they are durable. That
 * costs nothing while no other server writes for the tenant, and otherwise a statement, but no round trip.
 */
export async function runBatch(
  session: Session,
  commits: readonly Commit[],
  { tips, commit }: BatchEnd,
): Promise<CommitOutcome[]> {
  const together = commits.filter((it) => isPlain(it.changes))
  let made = await attempt(session, commits, tips, new Set(together))
  if (made === null) {
    await session.rollback()
    made = await attempt(session, commits, tips, new Set())
  }
  if (made === null) throw new Error('Rolling back to a savepoint must be possible')
  const { outcomes, auditWriter, tally, seen, moved } = made
  // A failure in any of these fails the whole transaction, so COMMIT need not wait for their answers.
  const [compared] = await allOf([
    moved.size === 0 ? NOTHING_COMPARED : compareTips(session.ask, moved),
    auditWriter.write(session),
    tally.write(session),
    commit(),
  ])
  for (const [tenant, tip] of auditWriter.tips) {
    tips.settle(tenant, seen.get(tenant), rememberedTip(tip), compared.get(tenant))
  }
  return outcomes
}

const NOTHING_COMPARED = Promise.resolve<ReadonlyMap<string, TipComparison>>(new Map())

/** Returns null when one of `together` was refused: the outcomes of the others are unknown then. */
async function attempt(
  session: Session,
  commits: readonly Commit[],
  remembered: TipMemory,
  together: ReadonlySet<Commit>,
): Promise<(Ending & { readonly outcomes: CommitOutcome[] }) | null> {
  const begun = new Set([...together].filter(isUnopposed))
  // Taken before the lock is asked for: an answer that is late must not look like a tip that was lost.
  const seen = remembered.of(commits.map((it) => it.tenantId))
  const rows = await begin(session, commits, begun)
  if (rows === null) return null
  const tips = new LockedChainTips(rows)
  if (![...together].every((it) => tips.refusal(it) === null)) return null
  const ending = {
    tips,
    tally: new PostgresTokenTally(),
    auditWriter: new PostgresAuditWriter(rows),
    seen,
    moved: movedOf(seen, rows),
    saved: false,
  }
  const left = await insertTogether(session, [...together], { ...ending, begun })
  if (left === null) return null
  const outcomes: CommitOutcome[] = []
  for (const it of commits) {
    const made = together.has(it) && !left.has(it)
    outcomes.push(made ? null : await guarded(session, it, ending))
  }
  return { ...ending, outcomes }
}

/**
 * Begins the transaction, inserts the tokens of `begun` and locks the chain tips of all tenants. Resolves with the
 * tips, or with null if a token conflicted.
 *
 * Everything is sent before the first answer arrives: each awaited answer costs a turn of the event loop. Only a list
 * that needs several statements is inserted completely before anything is locked.
 */
async function begin(
  session: Session,
  commits: readonly Commit[],
  begun: ReadonlySet<Commit>,
): Promise<readonly PostgresRow[] | null> {
  const beginning = allOf([session.begin(), insertUnopposed(session, begun)])
  try {
    if (isLong(begun)) await beginning
    const tenantIds = commits.map((it) => it.tenantId)
    const [[, inserted], tips] = await allOf([beginning, lockTenants(session, tenantIds)])
    return inserted ? tips : null
  } catch (error) {
    if (troubleOf(error) !== 'own') throw error
    return null
  }
}

/** Returns the tips in `seen` that are not those of `rows`. */
function movedOf(seen: RememberedTips, rows: readonly PostgresRow[]): RememberedTips {
  const moved = new Map<string, RememberedTip>()
  for (const { tenant, number, hash } of rows) {
    const tip = seen.get(String(tenant))
    if (tip !== undefined && !isSameTip(tip, tipOf(number, hash))) moved.set(String(tenant), tip)
  }
  return moved
}

async function guarded(session: Session, commit: Commit, ending: Ending): Promise<CommitOutcome> {
  const refusal = ending.tips.refusal(commit)
  if (refusal !== null) return refusal
  const { tenantId, changes } = commit
  const unitOfWork = newUnitOfWork(session, tenantId, enlistedIn(changes))
  // Ending a transaction reads the sums counted apart for it, and they must stay if the commit is refused.
  if (changes.some((it) => it.kind === 'end-transaction')) await ending.tally.write(session)
  await session.run(ending.saved ? 'RELEASE SAVEPOINT one; SAVEPOINT one' : 'SAVEPOINT one')
  ending.saved = true
  try {
    for (const change of changes) {
      const conflict = await applyChange(unitOfWork, change)
      if (conflict === null) continue
      await session.run('ROLLBACK TO SAVEPOINT one')
      return conflict
    }
  } catch (cause) {
    if (troubleOf(cause) !== 'own') throw cause
    await session.run('ROLLBACK TO SAVEPOINT one')
    return new Error('Cannot commit, and nothing was changed', { cause })
  }
  ending.tally.take(unitOfWork.tally)
  ending.auditWriter.append(tenantId, unitOfWork.events)
  return null
}

/** The locked chain tips, and the keys that they declare retired. */
class LockedChainTips {
  readonly #oldestKeyIds: ReadonlyMap<string, Uint8Array>

  constructor(rows: readonly PostgresRow[]) {
    const refusing = rows.filter((it) => it.sealed_from !== null)
    this.#oldestKeyIds = new Map(
      refusing.map((it) => [String(it.tenant), it.sealed_from as Uint8Array]),
    )
  }

  /** Returns why the commit must not be made, or null. */
  refusal({ tenantId, changes }: Commit): Error | null {
    const dataKeyId = this.#oldestKeyIds.get(tenantId)
    return dataKeyId === undefined ? null : retiredKeyError(changes, dataKeyId)
  }
}

function enlistedIn(changes: readonly Change[]): string | null {
  for (const it of changes) if (it.kind === 'enlist') return it.transactionId
  return null
}
