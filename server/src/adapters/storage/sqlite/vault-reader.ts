import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import { MOVE_BYTES_AT_ONCE, MOVE_ROWS_AT_ONCE } from '../../../base/limits.ts'
import { readCursor, writeCursor } from '../../../ports/vault-cursor.ts'
import {
  VAULT_TABLES,
  type VaultReader,
  type VaultRow,
  type VaultTable,
  type VaultTableName,
} from '../../../ports/vault-tables.ts'
import { eventsOfRow } from './earlier-events.ts'
import type { SqliteRow } from './rows.ts'
import { columnsHere, packKey, tableHere, unpackRow } from './vault-columns.ts'

export interface SqliteVaultReader extends VaultReader {
  /** Returns how many rows a table has after the row `after`, or in total. */
  readonly left: (table: VaultTableName, after: string | null) => number
}

/** Reads the content of the database for a move. Unfinished commits must be removed before. */
export function vaultReader(db: DatabaseSync): SqliteVaultReader {
  const prepared = new Map<string, StatementSync>()
  const prepare = (sql: string): StatementSync => {
    const statement = prepared.get(sql) ?? db.prepare(sql)
    prepared.set(sql, statement)
    statement.setReturnArrays(true)
    return statement
  }
  return {
    left: (table, after) => {
      const sql =
        table === 'record'
          ? eventsLeft(after)
          : `SELECT count(*) FROM ${tableHere(table)} ${after === null ? '' : follows(table)}`
      const [row] = prepare(sql).all(...parametersOf(table, after))
      return Number((row as unknown as SQLOutputValue[])[0])
    },

    readChunk: async (table, after) => {
      const rows: VaultRow[] = []
      let bytes = 0
      for (const found of prepare(chunkQuery(table, after)).iterate(
        ...parametersOf(table, after),
      )) {
        const stored = found as unknown as SQLOutputValue[]
        for (const values of table === 'record' ? eventsOf(stored) : [stored]) {
          const row = unpackRow(table, values)
          rows.push(row)
          bytes += bytesOf(row)
        }
        if (bytes >= MOVE_BYTES_AT_ONCE) break
      }
      return { rows, last: writeCursor(table, rows.at(-1)) }
    },
  }
}

/** Returns the statement that reads a chunk of a table in the order of its key. */
export function chunkQuery(table: VaultTableName, after: string | null): string {
  const { key }: VaultTable = VAULT_TABLES[table]
  const selected = columnsHere(table)
  if (table === 'record') selected.push('earlier')
  return `SELECT ${selected.join(', ')} FROM ${tableHere(table)} ${after === null ? '' : follows(table)}
    ORDER BY ${key.join(', ')} LIMIT ${MOVE_ROWS_AT_ONCE}`
}

/** Counts events, not rows: a row of the audit log holds one event or several. */
function eventsLeft(after: string | null): string {
  if (after === null) return 'SELECT total(number - removed_number) FROM record_heads'
  return `SELECT total(CASE tenant WHEN ?1 THEN number - ?2 ELSE number - removed_number END)
    FROM record_heads WHERE tenant >= ?1`
}

/** Returns the events of a row of the audit log as separate rows. */
function eventsOf(stored: SQLOutputValue[]): SQLOutputValue[][] {
  const [tenant, number, listed, entry, hash, earlier] = stored as NonNullable<SQLOutputValue>[]
  return eventsOfRow({ number, listed, entry, hash, earlier } as SqliteRow).map(
    (it) => [tenant, it.number, it.listed, it.entry, it.hash] as SQLOutputValue[],
  )
}

function follows(table: VaultTableName): string {
  const { key }: VaultTable = VAULT_TABLES[table]
  return `WHERE (${key.join(', ')}) > (${key.map(() => '?').join(', ')})`
}

function bytesOf(row: VaultRow): number {
  let bytes = 0
  for (const it of row) {
    if (typeof it === 'string' || it instanceof Uint8Array) bytes += it.length
  }
  return bytes
}

/** Returns the key of a row as parameters. */
function parametersOf(table: VaultTableName, cursor: string | null): SQLInputValue[] {
  return readCursor(table, cursor).map((it, n) => packKey(table, n, it))
}
