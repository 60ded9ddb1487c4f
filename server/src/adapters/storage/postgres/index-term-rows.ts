import { unpackIndexes } from '../../../ports/packed-token.ts'
import { insertRows, columnsOf, rowsFrom } from './several-rows.ts'
import type { PostgresRow } from './rows.ts'
import type { Session } from './session.ts'

/** A row of token_indexes: one index term of a token. */
export type IndexTermRow = readonly [tenant: string, hash: Uint8Array, serial: string]

const COLUMNS = { tenant: 'uuid', hash: 'bytea', serial: 'uuid' } as const

const ROWS_AT_ONCE = 2_000

export async function insertIndexTerms(
  session: Session,
  terms: readonly IndexTermRow[],
): Promise<void> {
  const sql = insertRows('token_indexes', COLUMNS)
  for (const it of chunksOf(terms)) await session.run(sql, columnsOf(COLUMNS, it))
}

export async function deleteIndexTerms(
  session: Session,
  terms: readonly IndexTermRow[],
): Promise<void> {
  const sql = `DELETE FROM token_indexes USING ${rowsFrom(COLUMNS, 'rows')}
    WHERE token_indexes.tenant = rows.tenant AND token_indexes.hash = rows.hash
      AND token_indexes.serial = rows.serial`
  for (const it of chunksOf(terms)) await session.run(sql, columnsOf(COLUMNS, it))
}

/** Expands packed index terms into rows. `rows` have tenant, internal id and the packed terms in `column`. */
export function indexTermsIn(rows: readonly PostgresRow[], column = 'indexes'): IndexTermRow[] {
  return rows.flatMap((row) => {
    const packed = row[column]
    if (!(packed instanceof Uint8Array)) return []
    return unpackIndexes(packed).map((hash): IndexTermRow => {
      return [String(row.tenant), hash, String(row.serial)]
    })
  })
}

function* chunksOf(terms: readonly IndexTermRow[]): Iterable<readonly IndexTermRow[]> {
  for (let at = 0; at < terms.length; at += ROWS_AT_ONCE) yield terms.slice(at, at + ROWS_AT_ONCE)
}
