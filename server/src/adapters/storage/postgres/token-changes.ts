/**
 * Updates and deletes tokens: at once outside transactions and for a transaction's own tokens, otherwise pending until
 * the transaction commits.
 */
import { PENDING_BYTES_MAX, PENDING_LIGHT_BYTES_MAX, PENDING_MAX } from '../../../base/limits.ts'
import type { ChangeOf } from '../../../ports/change.ts'
import type { FoundToken } from '../../../ports/stored.ts'
import { indexTermsOf } from '../../../ports/index-terms.ts'
import type { PostgresRow } from './rows.ts'
import { CONTENT, contentOf } from './token-content.ts'
import { COUNTED, countedIn } from './token-tally.ts'
import {
  deleteIndexTerms,
  insertIndexTerms,
  indexTermsIn,
  type IndexTermRow,
} from './index-term-rows.ts'
import { expireIfPast } from './transaction-changes.ts'
import { hasDuplicate } from './duplicate-checks.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'
import { HIDDEN, VISIBLE, livesAt, madeIn } from './visibility.ts'

const CHANGED = { kind: 'token-changed' } as const
const LOCKED = { kind: 'token-locked' } as const
const COLUMNS = Object.keys(CONTENT)

export async function updateToken(
  unitOfWork: UnitOfWork,
  change: ChangeOf<'update-token'>,
): ChangeStep {
  const { token, unlessDuplicate, now } = change
  if (await isLocked(unitOfWork, token.internalId, now)) return LOCKED
  if (
    unlessDuplicate &&
    token.fingerprint !== null &&
    (await hasDuplicate(unitOfWork, token, now))
  ) {
    return { kind: 'fingerprint-taken', type: token.type, fingerprint: token.fingerprint }
  }
  const as = { token, revision: token.revision - 1, now }
  if (waits(unitOfWork, token)) return await pend(unitOfWork, as, false, contentOf(token))
  const before = await find(unitOfWork, as)
  if (before === null) return CHANGED
  const { session, tenantId, tally } = unitOfWork
  const set = COLUMNS.map((column, n) => `${column} = $${n + 3}`)
  await session.run(`UPDATE tokens SET ${set.join(', ')} WHERE tenant = $1 AND serial = $2`, [
    tenantId,
    token.internalId,
    ...contentOf(token),
  ])
  await deleteIndexTerms(session, indexTermsIn([before]))
  await insertIndexTerms(
    session,
    indexTermsOf(token).map((hash): IndexTermRow => [tenantId, hash, token.internalId]),
  )
  tally.add(tenantId, countedIn(before), -1)
  tally.add(tenantId, countedIn({ ...before, modified_at: token.modifiedAt }), 1)
  return null
}

export async function deleteToken(
  unitOfWork: UnitOfWork,
  change: ChangeOf<'delete-token'>,
): ChangeStep {
  const { token, now } = change
  if (await isLocked(unitOfWork, token.internalId, now)) return LOCKED
  const as = { token, revision: token.revision, now }
  if (waits(unitOfWork, token)) {
    // A revision that no reader has ever seen.
    const nothing = COLUMNS.map((it) => (it === 'revision' ? -1 : null))
    return await pend(unitOfWork, as, true, nothing)
  }
  const before = await find(unitOfWork, as)
  if (before === null) return CHANGED
  const { session, tenantId, tally } = unitOfWork
  await session.run('DELETE FROM tokens WHERE tenant = $1 AND serial = $2', [
    tenantId,
    token.internalId,
  ])
  await deleteIndexTerms(session, indexTermsIn([before]))
  tally.add(tenantId, countedIn(before), -1)
  return null
}

/** A token, the revision that was read, and the time. */
interface Read {
  readonly token: FoundToken
  readonly revision: number
  readonly now: number
}

function waits({ within }: UnitOfWork, token: FoundToken): boolean {
  return within !== null && !token.uncommitted
}

/** Returns the token's row if it still has the revision that was read and is visible, or null. */
async function find(
  { session, tenantId, within }: UnitOfWork,
  { token, revision, now }: Read,
): Promise<PostgresRow | null> {
  const seen = within === null ? `${VISIBLE} AND $5::uuid IS NULL` : madeIn('$5::uuid')
  const [row] = await session.ask(
    `SELECT tenant, serial, indexes, ${COUNTED}, ${HIDDEN} AS hidden FROM tokens
     WHERE tenant = $1 AND serial = $2 AND revision = $3 AND ${livesAt('$4')} AND ${seen}`,
    [tenantId, token.internalId, revision, now, within],
  )
  return row ?? null
}

/**
 * Stores what the transaction will change about a token. A pending change from earlier supplies the revision to
 * compare.
 */
async function pend(
  { session, tenantId, within }: UnitOfWork,
  { token, revision, now }: Read,
  deleted: boolean,
  content: ReturnType<typeof contentOf>,
): ChangeStep {
  const types = Object.values(CONTENT)
  const values = COLUMNS.map((_column, n) => `$${n + 7}::${types[n]}`)
  const [noted] = await session.ask(
    `INSERT INTO pending (tenant, serial, holder, deleted, ${COLUMNS.join(', ')})
     SELECT $1, $2, $5, $6::boolean, ${values.join(', ')}
     FROM tokens WHERE tenant = $1 AND serial = $2 AND ${livesAt('$4')} AND ${VISIBLE}
       AND coalesce((SELECT before.revision FROM pending AS before
         WHERE before.tenant = $1 AND before.serial = $2), tokens.revision) = $3
     ON CONFLICT (tenant, serial) DO UPDATE SET
       ${['deleted', ...COLUMNS].map((it) => `${it} = excluded.${it}`).join(', ')}
     RETURNING (SELECT count(*) FROM pending AS other
       WHERE other.tenant = $1 AND other.holder = $5 AND other.serial <> $2) AS others,
       ${bytesIn('pending')} + (SELECT ${bytesIn('tokens')} FROM tokens
         WHERE tokens.tenant = $1 AND tokens.serial = $2) AS bytes`,
    [tenantId, token.internalId, revision, now, within, deleted, ...content],
  )
  if (noted === undefined) return CHANGED
  const full = Number(noted.others) >= PENDING_MAX
  const isLight = Number(noted.bytes) <= PENDING_LIGHT_BYTES_MAX
  return full || (!isLight && (await holdsTooMuch())) ? { kind: 'transaction-full' } : null

  async function holdsTooMuch(): Promise<boolean> {
    const [held] = await session.ask(
      `SELECT sum(${bytesIn('pending')} + ${bytesIn('tokens')}) AS bytes
       FROM pending LEFT JOIN tokens USING (tenant, serial)
       WHERE pending.tenant = $1 AND pending.holder = $2`,
      [tenantId, within],
    )
    return Number(held!.bytes) > PENDING_BYTES_MAX
  }
}

/** Size of a row's columns that may be large. */
function bytesIn(table: string): string {
  const columns = ['data', 'metadata', 'details'].map((it) => `${table}.${it}`)
  return columns.map((it) => `coalesce(octet_length(${it}), 0)`).join(' + ')
}

/** Whether another open transaction has a pending change to the token. Drops pending changes of ended transactions. */
async function isLocked(
  { session, tenantId, within }: UnitOfWork,
  internalId: string,
  now: number,
) {
  const [lock] = await session.ask(
    `SELECT holder, state FROM pending LEFT JOIN transactions
       ON transactions.tenant = pending.tenant AND transactions.id = pending.holder
     WHERE pending.tenant = $1 AND serial = $2`,
    [tenantId, internalId],
  )
  if (lock === undefined || lock.holder === within) return false
  const over =
    lock.state !== 'open' || (await expireIfPast(session, tenantId, String(lock.holder), now))
  if (!over) return true
  await session.run('DELETE FROM pending WHERE tenant = $1 AND serial = $2', [tenantId, internalId])
  return false
}
