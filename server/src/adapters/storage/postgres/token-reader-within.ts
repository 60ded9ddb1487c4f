/** Reads tokens as a transaction sees them: with its own tokens and its pending changes applied. */
import { isUuid } from '../../../base/id.ts'
import { INLINE_DATA_BYTES_MAX, SHOWN_DATA_BYTES_MAX } from '../../../base/limits.ts'
import type { FoundToken } from '../../../ports/stored.ts'
import type { DuplicateQuery } from '../../../ports/token-query.ts'
import { idOf, tokenOf, type PostgresRow } from './rows.ts'
import type { AskPostgres, PostgresValue } from './session.ts'
import { packText } from './text.ts'
import { Parameters, inOneOf } from './token-conditions.ts'
import { CONTENT, columnsIf } from './token-content.ts'
import { HIDDEN, VISIBLE, livesAt, madeIn } from './visibility.ts'

/** Selects the columns of a token, and those of its pending change. Data longer than `bytesMax` is null and stays on disk. */
function columnsUpTo(bytesMax: number): string {
  const isShort = (table: string): string => `octet_length(${table}.data) <= ${bytesMax}`
  const over = Object.keys(CONTENT).map((it) =>
    it === 'data'
      ? `CASE WHEN ${isShort('pending')} THEN pending.data END AS over_data`
      : `pending.${it} AS over_${it}`,
  )
  return [columnsIf(isShort('tokens'), 'tokens'), ...over].join(', ')
}

const SEEN_FROM = `FROM tokens LEFT JOIN pending ON pending.tenant = tokens.tenant
    AND pending.serial = tokens.serial AND pending.holder = $2::uuid
  WHERE tokens.tenant = $1 AND (${VISIBLE} OR ${madeIn('$2::uuid')})`

function seenUpTo(bytesMax: number): string {
  return `SELECT ${columnsUpTo(bytesMax)}, ${HIDDEN} AS uncommitted,
    pending.deleted AS over_deleted ${SEEN_FROM}`
}

const FOUND = seenUpTo(INLINE_DATA_BYTES_MAX)

/** Data longer than `bytesMax` is null. */
export async function findWithin(
  ask: AskPostgres,
  tenantId: string,
  ids: readonly string[],
  within: string,
  bytesMax = SHOWN_DATA_BYTES_MAX,
): Promise<FoundToken[]> {
  const seen = seenUpTo(bytesMax)
  const rows = await ask(
    `${seen} AND tokens.name IS NULL AND tokens.serial = ANY($3::uuid[])
     UNION ALL ${seen} AND tokens.name = ANY($4::text[])`,
    askedFor(tenantId, ids, within),
  )
  return rows.flatMap(overlaid)
}

/** Returns the ids of the tokens that findWithin() would find. */
export async function knownWithin(
  ask: AskPostgres,
  tenantId: string,
  ids: readonly string[],
  within: string,
): Promise<string[]> {
  const seen = `SELECT tokens.serial, tokens.name ${SEEN_FROM} AND pending.deleted IS NOT TRUE`
  const rows = await ask(
    `${seen} AND tokens.name IS NULL AND tokens.serial = ANY($3::uuid[])
     UNION ALL ${seen} AND tokens.name = ANY($4::text[])`,
    askedFor(tenantId, ids, within),
  )
  return rows.map(idOf)
}

/** Returns the parameters of the lookups by id over SEEN_FROM. */
function askedFor(tenantId: string, ids: readonly string[], within: string): PostgresValue[] {
  const known = isUuid(within) ? within : null
  return [tenantId, known, ids.filter(isUuid), [...new Set(ids)].map(packText)]
}

export async function findDuplicateWithin(
  ask: AskPostgres,
  tenantId: string,
  { type, fingerprint, containers }: DuplicateQuery,
  now: number,
  within: string,
): Promise<FoundToken | null> {
  const parameters = new Parameters()
  parameters.add(tenantId, 'uuid')
  parameters.add(isUuid(within) ? within : null, 'uuid')
  parameters.add(packText(type), 'text')
  parameters.add(packText(fingerprint), 'text')
  parameters.add(now, 'bigint')
  const inside = (table: string): string =>
    containers === undefined ? 'true' : inOneOf(containers, parameters, `${table}.containers`)
  const rows = await ask(
    `SELECT * FROM (
       ${FOUND} AND tokens.type = $3 AND ${livesAt('$5::bigint')}
         AND tokens.fingerprint = $4 AND pending.serial IS NULL AND ${inside('tokens')}
       UNION ALL
       ${FOUND} AND tokens.type = $3 AND ${livesAt('$5::bigint')}
         AND pending.fingerprint = $4 AND NOT pending.deleted AND ${livesAt('$5::bigint', 'pending')}
         AND ${inside('pending')}
     ) AS duplicates ORDER BY serial LIMIT 1`,
    parameters.values,
  )
  return rows.flatMap(overlaid)[0] ?? null
}

/** Applies the transaction's pending change to the token in `row`; returns nothing if it deletes the token. */
function overlaid(row: PostgresRow): FoundToken[] {
  if (row.over_deleted === true) return []
  if (row.over_deleted === null) return [tokenOf(row)]
  const over = Object.keys(CONTENT).map((it) => [it, row[`over_${it}`]!] as const)
  // Until the commit, the old expiry still applies if it is earlier.
  const ends = [row.expires_at, row.over_expires_at].filter((it) => typeof it === 'number')
  const expiresAt = ends.length > 0 ? Math.min(...ends) : null
  return [tokenOf({ ...row, ...Object.fromEntries(over), expires_at: expiresAt })]
}
