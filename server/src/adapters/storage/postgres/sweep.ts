/** Deletes unreachable rows for good, in small chunks of a few tenants each. */
import { SWEEP_BYTES_AT_ONCE } from '../../../base/limits.ts'
import { lockTenants } from './lock-tenants.ts'
import type { PostgresRow } from './rows.ts'
import type { AskPostgres, Session, PostgresValue } from './session.ts'
import { COUNTED, PostgresTokenTally, countedIn } from './token-tally.ts'
import { deleteIndexTerms, indexTermsIn } from './index-term-rows.ts'
import { HIDDEN } from './visibility.ts'

/** Rows per kind, and tenants, that one chunk touches at most. Writers for these tenants wait meanwhile. */
const ROWS_MAX = 256
const TENANTS_MAX = 16

const ENDED = `state IN ('committed', 'rolled_back', 'expired')`

/** Queries for tenants with something to sweep; $1 is now, $2 forgotten. */
const LOOKS = [
  'SELECT tenant FROM tokens WHERE expires_at <= $1',
  'SELECT tenant FROM tokens WHERE cvc_expires_at <= $1',
  'SELECT tenant FROM pending WHERE cvc_expires_at <= $1',
  'SELECT tenant FROM answers WHERE expires_at <= $1',
  "SELECT tenant FROM transactions WHERE state = 'open' AND expires_at <= $1",
  'SELECT tenant FROM transactions WHERE unswept',
  `SELECT tenant FROM transactions WHERE ${ENDED} AND expires_at <= $2 AND NOT unswept`,
]

/** Returns some tenants with something to sweep, or none. */
export async function tenantsToSweep(
  ask: AskPostgres,
  now: number,
  forgotten: number,
): Promise<string[]> {
  const looks = LOOKS.map((it) => `(${it} LIMIT ${TENANTS_MAX})`)
  const rows = await ask(
    `SELECT DISTINCT tenant FROM (${looks.join(' UNION ALL ')}) AS found
    LIMIT ${TENANTS_MAX}`,
    [now, forgotten],
  )
  return rows.map((row) => String(row.tenant))
}

/** Sweeps a chunk of the rows of `tenants`, in one transaction. Safe when several servers sweep at once. */
export async function sweepChunk(
  session: Session,
  tenants: readonly string[],
  { now, forgotten }: { readonly now: number; readonly forgotten: number },
): Promise<void> {
  const tally = new PostgresTokenTally()
  let removedBytes = 0
  await session.begin()
  await lockTenants(session, tenants)
  await session.run(
    `UPDATE transactions SET state = 'expired', unswept = true
     WHERE tenant = ANY($1::uuid[]) AND state = 'open' AND expires_at <= $2`,
    [tenants, now],
  )
  await deleteTokens('expires_at <= $2', [tenants, now])
  for (const table of ['tokens', 'pending']) {
    await session.run(
      `UPDATE ${table} SET cvc = NULL, cvc_expires_at = NULL WHERE (tenant, serial) IN
         (SELECT tenant, serial FROM ${table}
           WHERE tenant = ANY($1::uuid[]) AND cvc_expires_at <= $2 LIMIT ${ROWS_MAX})`,
      [tenants, now],
    )
  }
  await session.run(
    `DELETE FROM answers WHERE (tenant, id) IN (${few(
      'tenant, id',
      'octet_length(body)',
      `answers
       WHERE tenant = ANY($1::uuid[]) AND expires_at <= $2`,
    )})`,
    [tenants, now],
  )
  for (const it of await deadTransactions()) {
    await sweepDead(it)
    if (removedBytes >= SWEEP_BYTES_AT_ONCE) break
  }
  await session.run(
    `DELETE FROM transactions WHERE (tenant, id) IN (SELECT tenant, id FROM transactions
       WHERE tenant = ANY($1::uuid[]) AND ${ENDED} AND expires_at <= $2 AND NOT unswept
       LIMIT ${ROWS_MAX})`,
    [tenants, forgotten],
  )
  await tally.write(session)
  await session.commit()

  async function deadTransactions(): Promise<PostgresRow[]> {
    return await session.ask(
      `SELECT tenant, id FROM transactions WHERE tenant = ANY($1::uuid[]) AND unswept
       LIMIT ${TENANTS_MAX}`,
      [tenants],
    )
  }

  /** Sweeps a transaction that was not committed: drops its parked audit events, keys and sums. */
  async function sweepDead({ tenant, id }: PostgresRow): Promise<void> {
    const values = [String(tenant), String(id)]
    const removed = await deleteTokens('made_in = $2::uuid', [[String(tenant)], String(id)])
    if (removed > 0) return
    await session.run('DELETE FROM pending WHERE tenant = $1 AND holder = $2', values)
    await session.run(
      'DELETE FROM record_parked WHERE tenant = $1 AND transaction_id = $2::text',
      values,
    )
    await session.run(
      'DELETE FROM transaction_keys WHERE tenant = $1 AND transaction_id = $2',
      values,
    )
    await tally.write(session)
    await session.run('DELETE FROM token_counts WHERE tenant = $1 AND made_in = $2', values)
    await session.run(
      'UPDATE transactions SET unswept = false WHERE tenant = $1 AND id = $2',
      values,
    )
  }

  async function deleteTokens(which: string, values: readonly PostgresValue[]): Promise<number> {
    const removed = await session.ask(
      `DELETE FROM tokens WHERE (tenant, serial) IN (${few(
        'tenant, serial',
        LONG,
        `tokens
         WHERE tenant = ANY($1::uuid[]) AND ${which}`,
      )})
       RETURNING tenant, serial, indexes, ${COUNTED}, ${HIDDEN} AS hidden, ${LONG} AS bytes`,
      values,
    )
    for (const it of removed) {
      tally.add(String(it.tenant), countedIn(it), -1)
      removedBytes += Number(it.bytes)
    }
    await deleteIndexTerms(session, indexTermsIn(removed))
    return removed.length
  }
}

/** Size of a token's columns that may be large. */
const LONG = `octet_length(data) + coalesce(octet_length(metadata), 0) + coalesce(octet_length(details), 0)`

/** Selects the keys of some rows within the byte limit of one chunk, or of a single row that exceeds it. */
function few(key: string, bytes: string, source: string): string {
  return `SELECT ${key} FROM (
      SELECT ${key}, sum(bytes) OVER so_far AS bytes, row_number() OVER so_far AS place
      FROM (SELECT ${key}, ${bytes} AS bytes FROM ${source} LIMIT ${ROWS_MAX}) AS candidates
      WINDOW so_far AS (ORDER BY ${key} ROWS UNBOUNDED PRECEDING)) AS counted
    WHERE place = 1 OR bytes <= ${SWEEP_BYTES_AT_ONCE}`
}
