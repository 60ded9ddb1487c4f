/** Opens, guards and ends transactions. */
import { NIL_ID, isUuid } from '../../../base/id.ts'
import type { Change } from '../../../ports/change.ts'
import { allOf } from './all-of.ts'
import { columnsOf, insertRows } from './several-rows.ts'
import type { Session } from './session.ts'
import { packText } from './text.ts'
import { CONTENT } from './token-content.ts'
import { COUNTED, countedIn } from './token-tally.ts'
import { deleteIndexTerms, insertIndexTerms, indexTermsIn } from './index-term-rows.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'
import { HIDDEN, livesAt } from './visibility.ts'

type End = Extract<Change, { kind: 'end-transaction' }>

const NOT_OPEN = { kind: 'transaction-not-open' } as const

/** Opens a transaction, unless its application has too many. The tenant is locked: no other server opens one meanwhile. */
export async function openTransaction(
  { session, tenantId }: UnitOfWork,
  { transaction, openMax }: Extract<Change, { kind: 'open-transaction' }>,
): ChangeStep {
  const { id, state, createdBy, createdAt, expiresAt } = transaction
  const opened = await session.run(
    `INSERT INTO transactions (tenant, id, state, created_by, created_at, expires_at, unswept)
     SELECT $1::uuid, $2::uuid, $3::text, $4::text, $5::bigint, $6::bigint, false
     WHERE $7::bigint > (SELECT count(*) FROM transactions
       WHERE tenant = $1 AND created_by = $4 AND state = 'open' AND expires_at > $5)`,
    [tenantId, id, state, packText(createdBy), createdAt, expiresAt, openMax],
  )
  return opened === 0 ? { kind: 'transactions-open-max' } : null
}

/** Notes the keys of the commit for the transaction, which must be open. */
export async function enlist(
  { session, tenantId }: UnitOfWork,
  { transactionId, keys, now }: Extract<Change, { kind: 'enlist' }>,
): ChangeStep {
  if (!isUuid(transactionId)) return NOT_OPEN
  const rows = keys.map(({ applicationId, keyId }) => {
    return [tenantId, transactionId, applicationId, keyId ?? NIL_ID]
  })
  const [found] = await allOf([
    session.ask(
      `SELECT 1 FROM transactions WHERE tenant = $1 AND id = $2 AND state = 'open' AND expires_at > $3`,
      [tenantId, transactionId, now],
    ),
    session.run(insertRows('transaction_keys', KEYS), columnsOf(KEYS, rows)),
  ])
  return found.length === 0 ? NOT_OPEN : null
}

const KEYS = {
  tenant: 'uuid',
  transaction_id: 'uuid',
  application: 'uuid',
  application_key: 'uuid',
} as const

/** Whether a key that wrote in the transaction no longer works at `now`. */
async function isRevoked({ session, tenantId }: UnitOfWork, id: string, now: number) {
  const found = await session.ask(
    `SELECT 1 FROM transaction_keys AS it WHERE tenant = $1 AND transaction_id = $2 AND (
       NOT EXISTS (SELECT 1 FROM applications
         WHERE applications.tenant = $1 AND applications.id = it.application
           AND ${livesAt('$3', 'applications')})
       OR (it.application_key <> $4::uuid AND NOT EXISTS (SELECT 1 FROM application_keys AS own
         WHERE own.tenant = $1 AND own.application = it.application AND own.id = it.application_key)))
     LIMIT 1`,
    [tenantId, id, now, NIL_ID],
  )
  return found.length > 0
}

/** Marks a transaction as expired if its time is up. Call it before acting on such a transaction. */
export async function expireIfPast(
  session: Session,
  tenantId: string,
  id: string,
  now: number,
): Promise<boolean> {
  const ended = await session.run(
    `UPDATE transactions SET state = 'expired', unswept = true
     WHERE tenant = $1 AND id = $2 AND state = 'open' AND expires_at <= $3`,
    [tenantId, id, now],
  )
  return ended > 0
}

/**
 * Ends a transaction. Committing shows all its tokens by changing one row, however many there are; its pending changes
 * are bounded.
 */
export async function endTransaction(unitOfWork: UnitOfWork, { id, as, now }: End): ChangeStep {
  const { session, tenantId } = unitOfWork
  if (!isUuid(id)) return NOT_OPEN
  if (as === 'expired') return (await expireIfPast(session, tenantId, id, now)) ? null : NOT_OPEN
  const ended = await session.run(
    `UPDATE transactions SET state = $4, unswept = $5
     WHERE tenant = $1 AND id = $2 AND state = 'open' AND expires_at > $3`,
    [tenantId, id, now, as, as === 'rolled_back'],
  )
  if (ended === 0) return NOT_OPEN
  if (as === 'committed') {
    if (await isRevoked(unitOfWork, id, now)) return { kind: 'transaction-revoked' }
    await applyRemovals(unitOfWork, id)
    await applyUpdates(unitOfWork, id, now)
    await showSums(unitOfWork, id)
  }
  await allOf([
    session.run('DELETE FROM pending WHERE tenant = $1 AND holder = $2', [tenantId, id]),
    session.run('DELETE FROM transaction_keys WHERE tenant = $1 AND transaction_id = $2', [
      tenantId,
      id,
    ]),
  ])
  return null
}

async function applyRemovals({ session, tenantId, tally }: UnitOfWork, id: string): Promise<void> {
  const removed = await session.ask(
    `DELETE FROM tokens WHERE tenant = $1 AND serial IN
       (SELECT serial FROM pending WHERE tenant = $1 AND holder = $2 AND deleted)
     RETURNING tenant, serial, indexes, ${COUNTED}, ${HIDDEN} AS hidden`,
    [tenantId, id],
  )
  for (const it of removed) tally.add(tenantId, countedIn(it), -1)
  await deleteIndexTerms(session, indexTermsIn(removed))
}

/** Applies pending updates. Tokens that expired meanwhile stay expired. */
async function applyUpdates({ session, tenantId, tally }: UnitOfWork, id: string, now: number) {
  const which = `pending.tenant = $1 AND pending.holder = $2 AND NOT pending.deleted
    AND tokens.tenant = pending.tenant AND tokens.serial = pending.serial AND ${livesAt('$3')}`
  const values = [tenantId, id, now]
  const changed = await session.ask(
    `SELECT tokens.tenant, tokens.serial, tokens.indexes, pending.indexes AS new_indexes, type,
       tokens.created_at, tokens.modified_at, pending.modified_at AS new_modified_at, tokens.made_in,
       ${HIDDEN} AS hidden
     FROM pending JOIN tokens ON ${which}`,
    values,
  )
  if (changed.length === 0) return
  const set = Object.keys(CONTENT).map((it) => `${it} = pending.${it}`)
  await session.run(`UPDATE tokens SET ${set.join(', ')} FROM pending WHERE ${which}`, values)
  for (const it of changed) {
    tally.add(tenantId, countedIn(it), -1)
    tally.add(tenantId, countedIn({ ...it, modified_at: it.new_modified_at! }), 1)
  }
  await deleteIndexTerms(session, indexTermsIn(changed))
  await insertIndexTerms(session, indexTermsIn(changed, 'new_indexes'))
}

/** Merges the transaction's sums into the visible ones. Its tally must be written already. */
async function showSums({ session, tenantId }: UnitOfWork, id: string): Promise<void> {
  await session.run(
    `INSERT INTO token_counts (tenant, made_in, type, day, count, last_created_at)
     SELECT tenant, $3, type, day, count, last_created_at FROM token_counts
     WHERE tenant = $1 AND made_in = $2
     ON CONFLICT (tenant, made_in, type, day) DO UPDATE
     SET count = token_counts.count + excluded.count,
       last_created_at = greatest(token_counts.last_created_at, excluded.last_created_at)`,
    [tenantId, id, NIL_ID],
  )
  await session.run('DELETE FROM token_counts WHERE tenant = $1 AND made_in = $2', [tenantId, id])
}
