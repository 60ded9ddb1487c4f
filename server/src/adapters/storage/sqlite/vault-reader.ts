import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import { MOVE_BYTES_AT_ONCE, MOVE_ROWS_AT_ONCE } from '../../../base/limits.ts'
import { readCursor, writeCursor } from '../../../ports/vault-cursor.ts'
import {
  VAULT_TABLES,
  type VaultColumn,
  type VaultReader,
  type VaultRow,
  type VaultTable,
  type VaultTableName,
  type VaultValue,
} from '../../../ports/vault-tables.ts'
import { eventsOfRow } from './earlier-events.ts'
import { packId, unpackId } from './ids.ts'
import type { SqliteRow } from './rows.ts'

/** Selects the open transaction of the staging batch with this number; null if the staging batch is closed. */
const MADE_IN = (stagingBatch: string): string =>
  `(SELECT transactions.id FROM units CROSS JOIN transactions ON number = holder WHERE units.id = ${stagingBatch})`

const NOTHING = 'zeroblob(16)'

/** SQL for columns that are stored here in another form. */
const OTHERWISE: Readonly<Record<string, string>> = {
  'tokens.deduplicate': 'deduplicate IS NOT NULL',
  'tokens.revision': 'ifnull(revision, 0)',
  'tokens.made_in': MADE_IN('unit'),
  'transactions.unswept': 'unswept IS NOT NULL',
  // If the transaction is gone, so is the tenant, and the change will never be applied.
  'pending.holder': `ifnull((SELECT id FROM transactions WHERE number = holder), ${NOTHING})`,
  'pending.deleted': 'deleted IS NOT NULL',
  'pending.deduplicate': 'CASE WHEN deleted IS NULL THEN deduplicate IS NOT NULL END',
}

/**
 * SQL for tables that are stored here in another form. A transaction may have several staging
 * batches, each with its own sums.
 */
const TABLES_OTHERWISE: Partial<Record<VaultTableName, string>> = {
  token_counts: `(SELECT tenant, ifnull(${MADE_IN('unit')}, ${NOTHING}) AS made_in, type, day,
      sum(count) AS count, max(last_created_at) AS last_created_at
    FROM token_counts GROUP BY 1, 2, 3, 4)`,
}

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
          : `SELECT count(*) FROM ${fromOf(table)} ${after === null ? '' : follows(table)}`
      const [row] = prepare(sql).all(...parametersOf(table, after))
      return Number((row as unknown as SQLOutputValue[])[0])
    },

    readChunk: async (table, after) => {
      const { columns }: VaultTable = VAULT_TABLES[table]
      const kinds = Object.values(columns)
      const rows: VaultRow[] = []
      let bytes = 0
      for (const found of prepare(chunkQuery(table, after)).iterate(
        ...parametersOf(table, after),
      )) {
        const stored = found as unknown as SQLOutputValue[]
        for (const values of table === 'record' ? eventsOf(stored) : [stored]) {
          const row = values.map((it, n) => unpack(kinds[n]!, it))
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
  const { key, columns }: VaultTable = VAULT_TABLES[table]
  const selected = Object.keys(columns).map((it) => {
    const otherwise = OTHERWISE[`${table}.${it}`]
    return otherwise === undefined ? it : `${otherwise} AS ${it}`
  })
  if (table === 'record') selected.push('earlier')
  return `SELECT ${selected.join(', ')} FROM ${fromOf(table)} ${after === null ? '' : follows(table)}
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

function fromOf(table: VaultTableName): string {
  return TABLES_OTHERWISE[table] ?? table
}

function unpack(kind: VaultColumn, value: SQLOutputValue): VaultValue {
  if (value === null) return null
  if (kind === 'id' || kind === 'name') return unpackId(value)
  if (kind === 'flag') return value !== 0
  if (kind === 'metadata') return JSON.stringify(JSON.parse(String(value)))
  return value as string | number | Uint8Array
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
  const { key, columns }: VaultTable = VAULT_TABLES[table]
  return readCursor(table, cursor).map((it, n) => {
    const kind = columns[key[n]!]
    return kind === 'id' || kind === 'name' ? packId(String(it)) : (it as SQLInputValue)
  })
}
