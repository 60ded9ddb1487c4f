import { MOVE_BYTES_AT_ONCE, MOVE_ROWS_AT_ONCE } from '../../../base/limits.ts'
import { readCursor, writeCursor } from '../../../ports/vault-cursor.ts'
import {
  VAULT_TABLES,
  type VaultReader,
  type VaultTable,
  type VaultTableName,
} from '../../../ports/vault-tables.ts'
import type { AskPostgres } from './session.ts'
import { columnsHere, packKey, tableHere, unpackRow } from './vault-columns.ts'

/** Reads the vault in the database, chunk by chunk. */
export function vaultReader(ask: AskPostgres): VaultReader {
  return {
    readChunk: async (table, after) => {
      const columns = Object.keys(columnsHere(table))
      const values = readCursor(table, after).map((it, n) => packKey(table, n, it))
      const found = await ask(chunkQuery(table, after !== null), values)
      const rows = found
        .map((row) => columns.map((it) => row[it]!))
        .map((it) => unpackRow(table, it))
      return { rows, last: writeCursor(table, rows.at(-1)) }
    },
  }
}

/** Returns the query for a chunk. It stops at the first row beyond the byte limit, because row sizes are unknown. */
function chunkQuery(table: VaultTableName, follows: boolean): string {
  const { key }: VaultTable = VAULT_TABLES[table]
  const types = columnsHere(table)
  const columns = Object.keys(types).join(', ')
  const place = key.join(', ')
  const parameters = key.map((it, n) => `$${n + 1}::${types[it]}`).join(', ')
  const sizes = Object.keys(types)
    .filter((it) => types[it] === 'bytea' || types[it] === 'text')
    .map((it) => `coalesce(octet_length(${it}), 0)`)
  return `SELECT ${columns} FROM (
      SELECT *, coalesce(sum(${['0', ...sizes].join(' + ')}) OVER (
        ORDER BY ${place} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
      FROM (SELECT ${columns} FROM ${tableHere(table)}
        ${follows ? `WHERE (${place}) > (${parameters})` : ''}
        ORDER BY ${place} LIMIT ${MOVE_ROWS_AT_ONCE}) AS stretch) AS counted
    WHERE bytes_before < ${MOVE_BYTES_AT_ONCE} ORDER BY ${place}`
}
