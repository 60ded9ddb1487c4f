/** Bulk path for the most common commits: new tokens, answers remembered for replay, audit events. */
import type { Change } from '../../../ports/change.ts'
import { allOf } from './all-of.ts'
import { rememberAnswers, type AnswerOfTenant } from './answer-changes.ts'
import { pendingOf, type PostgresAuditWriter } from './audit-writer.ts'
import type { Commit } from './run-batch.ts'
import { troubleOf, type Session } from './session.ts'
import { ROWS_AT_ONCE, insertTokens, isNamedByUuid, type TokenInsert } from './token-inserts.ts'
import { countedOf, type PostgresTokenTally } from './token-tally.ts'
import { mustBeUnique, placesOfDuplicates } from './duplicate-checks.ts'

/** Whether the commit has only changes that can be inserted in bulk with others' and almost never conflict. */
export function isPlain(changes: readonly Change[]): boolean {
  return changes.every(
    (it) =>
      it.kind === 'append-audit-events' ||
      it.kind === 'remember-answer' ||
      (it.kind === 'insert-tokens' && !it.tokens.some(isNamedByUuid)),
  )
}

/** Whether no other commit can conflict with its tokens: their ids are generated, and duplicates are allowed. */
export function isUnopposed({ changes }: Commit): boolean {
  return changes.every(
    (it) =>
      it.kind !== 'insert-tokens' ||
      it.tokens.every((token) => token.id === token.internalId && !mustBeUnique(token)),
  )
}

/** Whether the commits have more tokens than one statement takes. */
export function isLong(commits: Iterable<Commit>): boolean {
  let tokens = 0
  for (const it of commits) tokens += tokensOf(it).length
  return tokens > ROWS_AT_ONCE
}

/** Inserts the tokens of unopposed commits; returns whether all were new. */
export async function insertUnopposed(
  session: Session,
  commits: Iterable<Commit>,
): Promise<boolean> {
  return await insertTokens(session, [...commits].flatMap(tokensOf))
}

interface Together {
  /** Commits whose tokens are inserted already. */
  readonly begun: ReadonlySet<Commit>
  readonly tally: PostgresTokenTally
  readonly auditWriter: PostgresAuditWriter
}

/**
 * Applies plain commits with one statement per table, all sent before the first is answered. Resolves with the commits
 * left out because one of their tokens has, or may have, a duplicate; with null when any insert conflicted.
 */
export async function insertTogether(
  session: Session,
  commits: readonly Commit[],
  { begun, tally, auditWriter }: Together,
): Promise<ReadonlySet<Commit> | null> {
  const left = await withDuplicates(session, commits)
  const making = commits.filter((it) => !left.has(it))
  for (const it of making) {
    for (const { tenantId, token } of tokensOf(it)) tally.add(tenantId, countedOf(token, null), 1)
    for (const change of it.changes) {
      if (change.kind === 'append-audit-events')
        auditWriter.append(it.tenantId, change.events.map(pendingOf))
    }
  }
  try {
    const [inserted, remembered] = await allOf([
      insertTokens(session, making.filter((it) => !begun.has(it)).flatMap(tokensOf)),
      rememberAnswers(session, making.flatMap(answersOf)),
    ])
    return inserted && remembered ? left : null
  } catch (error) {
    // The first error counts; later statements were not even tried.
    if (troubleOf(error) !== 'own') throw error
    return null
  }
}

/** Returns the commits with a token that must not have a duplicate but has one, in the batch or in the database. */
async function withDuplicates(session: Session, commits: readonly Commit[]): Promise<Set<Commit>> {
  const all = commits.flatMap((commit) => tokensOf(commit).map((it) => ({ commit, ...it })))
  const asked = all.filter(({ token }) => mustBeUnique(token))
  if (asked.length === 0) return new Set()
  const alike = new Map<string, number>()
  for (const it of all) {
    if (it.token.fingerprint !== null) alike.set(keyOf(it), (alike.get(keyOf(it)) ?? 0) + 1)
  }
  const found = await placesOfDuplicates(
    session,
    asked.map(({ tenantId, token }) => ({ tenantId, token, now: token.createdAt })),
  )
  return new Set(
    asked.filter((it, n) => found.has(n) || alike.get(keyOf(it))! > 1).map((it) => it.commit),
  )
}

function keyOf({ tenantId, token: { type, fingerprint } }: TokenInsert): string {
  return JSON.stringify([tenantId, type, fingerprint])
}

function tokensOf({ tenantId, changes }: Commit): TokenInsert[] {
  return changes.flatMap((it) =>
    it.kind === 'insert-tokens'
      ? it.tokens.map((token) => ({ tenantId, token, within: null }))
      : [],
  )
}

function answersOf({ tenantId, changes }: Commit): AnswerOfTenant[] {
  return changes.flatMap((it) => (it.kind === 'remember-answer' ? [{ ...it, tenantId }] : []))
}
