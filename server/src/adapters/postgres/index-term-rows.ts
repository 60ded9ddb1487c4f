import { unpackIndexes } from '../../ports/packed-token.ts'
import { insertRows, columnsOf, rowsFrom } from './bulk.ts'
import type { PostgresRow } from './rows.ts'
import type { Session } from './session.ts'

/** A row of token_indexes: what a token is found by. */
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

/** The index terms of rows of tenant, internal id and packed indexes; `column` says where those are. */
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
