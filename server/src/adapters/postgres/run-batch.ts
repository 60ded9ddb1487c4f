import { retiredKeyError } from '../../ports/retired-keys.ts'
import type { Change, Conflict } from '../../ports/change.ts'
import { allOf } from './all-of.ts'
import { applyChange } from './apply-change.ts'
import { lockTenants } from './lock-tenants.ts'
import { insertTogether, insertUnopposed, isLong, isPlain, isUnopposed } from './plain-commits.ts'
import { PostgresAuditWriter } from './audit-writer.ts'
import type { PostgresRow } from './rows.ts'
import { troubleOf, type Session } from './session.ts'
import { PostgresTokenTally } from './token-tally.ts'
import { newUnitOfWork } from './unit-of-work.ts'

export interface Commit {
  readonly tenantId: string
  readonly changes: readonly Change[]
}

/** What became of a commit: made, refused, or impossible for a reason of its own. */
export type CommitOutcome = null | Conflict | Error

/** What a batch writes at its end, for all its commits. */
interface Ending {
  readonly tips: LockedChainTips
  readonly tally: PostgresTokenTally
  readonly auditWriter: PostgresAuditWriter
  /** Whether there is a savepoint, of the commit before. */
  saved: boolean
}

/**
 * Makes every commit of the batch whole or not at all, all in one transaction, up to the step that makes it durable:
 * `commit` says when. Resolves with an outcome for each.
 *
 * Tokens that nobody can be in the way of are inserted first. Then the tenants are locked, in one order, so nobody else
 * writes for them meanwhile. Commits that are almost never refused are made together, in one statement for each
 * table; the others have a savepoint each. If one of the first is refused after all, everything is rolled back and made
 * again with savepoints.
 */
export async function runBatch(
  session: Session,
  commits: readonly Commit[],
  commit: () => Promise<void>,
): Promise<CommitOutcome[]> {
  const together = commits.filter((it) => isPlain(it.changes))
  let made = await attempt(session, commits, new Set(together))
  if (made === null) {
    await session.run('ROLLBACK')
    made = await attempt(session, commits, new Set())
  }
  if (made === null) throw new Error('A commit with a savepoint can be gone back on')
  const { outcomes, auditWriter: record, tally } = made
  // Nothing of this can be refused and leave the transaction whole, so committing need not wait for the others' answers.
  await allOf([record.write(session), tally.write(session), commit()])
  return outcomes
}

/** Null when one of `together` was refused: then nothing can be said of the others. */
async function attempt(
  session: Session,
  commits: readonly Commit[],
  together: ReadonlySet<Commit>,
): Promise<(Ending & { readonly outcomes: CommitOutcome[] }) | null> {
  const begun = new Set([...together].filter(isUnopposed))
  const rows = await begin(session, commits, begun)
  if (rows === null) return null
  const tips = new LockedChainTips(rows)
  if (![...together].every((it) => tips.refusal(it) === null)) return null
  const ending = {
    tips: tips,
    tally: new PostgresTokenTally(),
    auditWriter: new PostgresAuditWriter(rows),
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
 * Begins the transaction, inserts the tokens of `begun`, and locks the chain tips of all tenants, which it resolves with;
 * with null when a token was in the way.
 *
 * All are on their way before one is answered: every answer that is waited for costs a turn of the event loop. Only
 * a list that is no single statement is there whole before anything is locked.
 */
async function begin(
  session: Session,
  commits: readonly Commit[],
  begun: ReadonlySet<Commit>,
): Promise<readonly PostgresRow[] | null> {
  const beginning = allOf([session.run('BEGIN'), insertUnopposed(session, begun)])
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

async function guarded(session: Session, commit: Commit, ending: Ending): Promise<CommitOutcome> {
  const refusal = ending.tips.refusal(commit)
  if (refusal !== null) return refusal
  const { tenantId, changes } = commit
  const unitOfWork = newUnitOfWork(session, tenantId, enlistedIn(changes))
  // What is counted apart until then is to be found there, and stay there if the commit is refused.
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

/** The locked chain tips, and which keys they name as retired. */
class LockedChainTips {
  readonly #oldestKeyIds: ReadonlyMap<string, Uint8Array>

  constructor(rows: readonly PostgresRow[]) {
    const refusing = rows.filter((it) => it.sealed_from !== null)
    this.#oldestKeyIds = new Map(
      refusing.map((it) => [String(it.tenant), it.sealed_from as Uint8Array]),
    )
  }

  /** Returns why the commit is not to be made, or null. */
  refusal({ tenantId, changes }: Commit): Error | null {
    const dataKeyId = this.#oldestKeyIds.get(tenantId)
    return dataKeyId === undefined ? null : retiredKeyError(changes, dataKeyId)
  }
}

function enlistedIn(changes: readonly Change[]): string | null {
  for (const it of changes) if (it.kind === 'enlist') return it.transactionId
  return null
}
